"""Speed, measured against the plain ways of doing the same: `make bench`, docs/performance.md."""
