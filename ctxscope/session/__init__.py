"""Where log and traffic meet: folding, joining, and the snapshot that the faces read. Decides nothing itself."""
