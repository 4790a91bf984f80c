//! Watches the servers: /proc, PSI, cgroups, sockets, and who talks to whom.
