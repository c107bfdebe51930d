"""Reports on findings: a page for reviewers, a text for a pull request, a test, the case."""
