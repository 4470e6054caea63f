"""The parts of a service that runs compiled programs for many clients.

They know no HTTP framework and no secret key. ``keys.KeyStore`` holds clients' keys on disk, and
``uploads.Uploads`` takes them in pieces and checks them while they come.
"""
