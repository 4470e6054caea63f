"""Compiled programs: client, server, what they exchange, files and reports."""
