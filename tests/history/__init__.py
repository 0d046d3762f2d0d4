"""What is known of the published releases, and what it takes to play a bump from one to the next."""
