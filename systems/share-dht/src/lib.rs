//! The index of file sharing spread over the peers.
