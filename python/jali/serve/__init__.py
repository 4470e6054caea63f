"""The parts of a service that runs compiled programs for many clients.

``service.Service`` computes, ``keys.KeyStore`` holds clients' keys on disk, and ``uploads.Uploads``
takes them in pieces and checks them while they come. They know no HTTP framework and no secret key.
``app`` and ``server`` put HTTP before them, with packages that are imported when they run.
"""
