"""What every folder of the package uses: parts, checks, scopes, and the private names of Keras."""
