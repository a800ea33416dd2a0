"""What Laneway is about: lanes, turns, delivery. Knows no platform and no process wiring."""
