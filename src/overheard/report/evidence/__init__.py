"""Evidence for a data-protection file: an annex, digests of files, and standards by finding."""
