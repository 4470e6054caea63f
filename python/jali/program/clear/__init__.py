"""What the client of a compiled program computes in the clear: before it encrypts, and after it
decrypts."""
