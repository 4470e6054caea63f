"""What the encrypted arrays of any scheme need: checks, capture, batching, the array protocol."""
