"""How a watch looks: at an address, a command's output, a file. One look in, what was seen out.

Nothing here knows jobs, the store or what is waited for; every look has a limit in time and size.
"""
