"""The bundled cluster: its founding, its keys and users, and the rights of each part."""
