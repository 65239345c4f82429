"""One file per API key; the registry answers ApiVersions."""
