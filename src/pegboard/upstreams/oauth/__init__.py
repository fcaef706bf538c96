"""Signing in at servers by OAuth 2.1 (MCP 2025-11-25 and 2026-07-28, authorization), on the SDK's flow.

`login` gets credentials, with a person or without; `CredentialStore` keeps them; `BearerAuth` uses them for requests.
"""
