"""The built-in channel of the terminal and the web chat."""
