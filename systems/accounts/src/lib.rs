//! The accounts server of S1: who a user is, kept durably.
