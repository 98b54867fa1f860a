"""The command line, the local stack, images and examples; composes everything, and nothing imports it."""
