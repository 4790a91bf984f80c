//! The media type of a file, by its extension.

/// Extensions and their types, the most common of the IANA registry.
const TYPES: [(&str, &str); 34] = [
    ("7z", "application/x-7z-compressed"),
    ("avif", "image/avif"),
    ("bz2", "application/x-bzip2"),
    ("css", "text/css; charset=utf-8"),
    ("csv", "text/csv; charset=utf-8"),
    ("epub", "application/epub+zip"),
    ("gif", "image/gif"),
    ("gz", "application/gzip"),
    ("htm", "text/html; charset=utf-8"),
    ("html", "text/html; charset=utf-8"),
    ("ico", "image/vnd.microsoft.icon"),
    ("jpeg", "image/jpeg"),
    ("jpg", "image/jpeg"),
    ("js", "text/javascript; charset=utf-8"),
    ("json", "application/json"),
    ("md", "text/markdown; charset=utf-8"),
    ("mjs", "text/javascript; charset=utf-8"),
    ("mp3", "audio/mpeg"),
    ("mp4", "video/mp4"),
    ("ogg", "audio/ogg"),
    ("pdf", "application/pdf"),
    ("png", "image/png"),
    ("svg", "image/svg+xml"),
    ("tar", "application/x-tar"),
    ("toml", "application/toml"),
    ("txt", "text/plain; charset=utf-8"),
    ("wasm", "application/wasm"),
    ("wav", "audio/wav"),
    ("webm", "video/webm"),
    ("webp", "image/webp"),
    ("woff2", "font/woff2"),
    ("xml", "application/xml"),
    ("zip", "application/zip"),
    ("zst", "application/zstd"),
];

/// The type of all others.
const UNKNOWN: &str = "application/octet-stream";

/// The media type of a path.
pub fn of(path: &str) -> &'static str {
    let name = path.rsplit('/').next().unwrap_or_default();
    let Some((_, ending)) = name.rsplit_once('.') else { return UNKNOWN };
    let known = TYPES.iter().find(|(known, _)| ending.eq_ignore_ascii_case(known));
    known.map_or(UNKNOWN, |(_, media_type)| media_type)
}

/// Whether a browser might run a script in a file of this type as one of this site's own.
pub fn is_active(media_type: &str) -> bool {
    ["text/html", "image/svg+xml", "application/xml"].iter().any(|active| media_type.starts_with(active))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ending_decides() {
        assert_eq!(of("a/b.PDF"), "application/pdf");
        assert_eq!(of("x.tar.gz"), "application/gzip");
        assert_eq!(of("a.pdf/plain"), UNKNOWN);
        assert_eq!(of("a."), UNKNOWN);
        assert_eq!(of(""), UNKNOWN);
    }

    #[test]
    fn what_can_hold_a_script_is_known() {
        for active in ["a.html", "a.HTM", "a.svg", "a.xml"] {
            assert!(is_active(of(active)), "{active}");
        }
        assert!(!is_active(of("a.js")) && !is_active(of("a.pdf")) && !is_active(UNKNOWN));
    }
}
