"""What is the same for every schema. Its modules are private: the package has the names that are for users."""
