"""Encrypted inference from one command."""
