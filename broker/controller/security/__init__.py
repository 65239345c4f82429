"""Users, rights and quotas, altered by the active controller."""
