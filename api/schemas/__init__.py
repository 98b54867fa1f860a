"""What request bodies may hold."""
