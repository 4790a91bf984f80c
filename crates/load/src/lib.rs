//! Makes the load: scenario, users, requests, histograms.
