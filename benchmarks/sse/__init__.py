"""What the benchmark of the HTTP client measures with: a test server, a floor, a peer, and ours."""
