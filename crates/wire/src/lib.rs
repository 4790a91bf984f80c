//! HTTP/1.1 as bytes: a sans-I/O codec for both ends.
