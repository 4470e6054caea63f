"""Which slot of which ciphertext holds which number, and what that makes of matrices."""
