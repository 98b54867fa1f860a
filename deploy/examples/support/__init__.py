"""Support: a chat agent with two tools, one of which asks a person before it gives money back."""
