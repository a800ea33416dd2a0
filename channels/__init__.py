"""One folder per platform: its updates become our messages, our parts become its calls."""
