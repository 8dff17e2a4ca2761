"""One paper a file: found by walking this folder."""
