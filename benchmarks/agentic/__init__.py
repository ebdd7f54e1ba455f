"""What it costs to replay recorded trajectories turn by turn: our client against a bare socket and against a peer."""
