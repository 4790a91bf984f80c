//! Shows a run: terminal, HTML, JSON, CSV. Formats, never computes.
