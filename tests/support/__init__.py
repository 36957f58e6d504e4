"""What several tests share: finding servers, running demos, a plain server with the demo's rows."""
