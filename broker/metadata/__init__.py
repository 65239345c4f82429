"""The cluster's metadata: records of the metadata log, and the image that they make."""
