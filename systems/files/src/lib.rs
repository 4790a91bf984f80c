//! The file server of S1: sends a file to a user the accounts server knows.
