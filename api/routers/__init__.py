"""The routes, one module an area; each reads its request, calls one thing, and shapes the answer."""
