//! Which paths a server knows, and the methods that each of them takes.

/// A path of an API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Route {
    pub(crate) path: &'static str,
    methods: &'static str,
}

/// The route that a request's path matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RouteMatch<'p> {
    /// The route's path, such as `/rooms/{id}`. Logs and metrics show it too.
    pub path: &'static str,
    /// The segment that `{..}` stands for, still percent-encoded; empty if the route has none.
    pub parameter: &'p str,
    pub(crate) methods: &'static str,
}

/// Served by the framework.
pub(crate) const HEALTH: Route = Route::new("/healthz", "GET, HEAD");
/// Served by the framework.
pub(crate) const METRICS: Route = Route::new("/metrics", "GET, HEAD");
/// The label of requests that match no route.
pub(crate) const OTHER: &str = "other";

impl Route {
    /// A route of a `path`, in which one segment may be a parameter such as `{id}`, and the `methods` that it takes, as
    /// in an `Allow` header. `HEAD` is answered like `GET`.
    pub const fn new(path: &'static str, methods: &'static str) -> Self {
        Self { path, methods }
    }

    fn matching<'p>(&self, path: &'p str) -> Option<RouteMatch<'p>> {
        let mut parameter = "";
        let (mut expected, mut given) = (self.path.split('/'), path.split('/'));
        loop {
            match (expected.next(), given.next()) {
                (None, None) => {
                    return Some(RouteMatch { path: self.path, parameter, methods: self.methods });
                }
                (Some(name), Some(value)) if name.starts_with('{') => parameter = value,
                (Some(name), Some(value)) if name == value => {}
                _ => return None,
            }
        }
    }
}

impl RouteMatch<'_> {
    /// Whether the route takes this method.
    pub(crate) fn allows(&self, method: &str) -> bool {
        self.methods.split(", ").any(|allowed| allowed == method)
    }
}

/// Finds the route of a path among those of a system and of the framework.
pub(crate) fn find<'p>(routes: &[Route], path: &'p str) -> Option<RouteMatch<'p>> {
    routes.iter().chain(&[HEALTH, METRICS]).find_map(|route| route.matching(path))
}

/// What requests are counted under: each route, and then [`OTHER`].
pub(crate) fn labels(routes: &[Route]) -> Vec<&'static str> {
    let paths = routes.iter().chain(&[HEALTH, METRICS]).map(|route| route.path);
    paths.chain([OTHER]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUTES: &[Route] = &[
        Route::new("/", "GET, HEAD"),
        Route::new("/rooms", "GET, HEAD, POST"),
        Route::new("/rooms/{id}", "GET, HEAD"),
        Route::new("/rooms/{id}/calendar.ics", "GET, HEAD"),
    ];

    #[test]
    fn paths_match_segment_by_segment() {
        for (path, expected) in [
            ("/", Some(("/", ""))),
            ("/rooms", Some(("/rooms", ""))),
            ("/rooms/7", Some(("/rooms/{id}", "7"))),
            ("/rooms/", Some(("/rooms/{id}", ""))),
            ("/rooms/a%2Fb", Some(("/rooms/{id}", "a%2Fb"))),
            ("/rooms/7/calendar.ics", Some(("/rooms/{id}/calendar.ics", "7"))),
            ("/healthz", Some(("/healthz", ""))),
            ("/metrics", Some(("/metrics", ""))),
            ("", None),
            ("rooms", None),
            ("//rooms", None),
            ("/rooms/7/", None),
            ("/rooms/7/calendar.ics/x", None),
            ("*", None),
        ] {
            let found = find(ROUTES, path);
            assert_eq!(found.map(|found| (found.path, found.parameter)), expected, "{path}");
        }
    }

    #[test]
    fn methods_are_whole_words() {
        let found = find(ROUTES, "/rooms").unwrap();
        assert!(found.allows("GET") && found.allows("POST"));
        assert!(!found.allows("get") && !found.allows("PO") && !found.allows("") && !found.allows("DELETE"));
    }
}
