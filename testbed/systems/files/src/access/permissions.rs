//! Who may read and who may write what.
//!
//! Without rules, every user may read everything except the folders of other users, `users/NAME`, and may write in their
//! own. Administrators may do everything. Rules change that for users: of the rules whose path contains a file, those with
//! the longest path apply, and a user may do what any of them allows.

mod file;

use accounts::{Role, User};

pub use self::file::PermissionsError;
use crate::{access::identity::Caller, refusal::Refusal};

/// The folder that contains the users' own folders.
const USERS: &str = "users";

/// The files of the server, under these rules.
pub(crate) type OpenFiles = folder::OpenFiles<Permissions>;

/// The rules of a server. By default there are none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Permissions {
    /// One for each path, longest first.
    groups: Vec<Group>,
}

/// The rules of one path.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Group {
    path: String,
    rules: Vec<Rule>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Rule {
    /// The users it applies to. It applies to everybody if this and `roles` are empty.
    users: Vec<String>,
    roles: Vec<Role>,
    may: Rights,
}

/// What a caller may do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Rights {
    pub(crate) read: bool,
    pub(crate) write: bool,
}

const ALL: Rights = Rights { read: true, write: true };

/// What determines the rights for a path. It is looked up once for a file, so that checking a user's rights costs next to
/// nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Place {
    /// The user whose folder contains it.
    owner: Option<Box<str>>,
    /// The index of the group of rules that applies.
    group: Option<usize>,
    /// What determines the rights where a symbolic link leads. A caller needs both.
    target: Option<Box<Self>>,
}

impl folder::PathRules for Permissions {
    type Rule = Place;

    fn rule(&self, path: &str) -> Place {
        self.place(path)
    }

    fn rule_of_link(&self, path: &str, target: &str) -> Place {
        Place { target: Some(Box::new(self.place(target))), ..self.place(path) }
    }
}

impl Permissions {
    /// What determines the rights for a decoded path.
    pub(crate) fn place(&self, path: &str) -> Place {
        let owner = owner(path);
        // A rule for a folder above does not open users' folders.
        let applies = |group: &Group| {
            contains(&group.path, path) && (owner.is_none() || self::owner(&group.path).is_some())
        };
        Place { owner: owner.map(Into::into), group: self.groups.iter().position(applies), target: None }
    }

    /// What a caller may do there.
    pub(crate) fn rights(&self, place: &Place, caller: &Caller) -> Rights {
        let named = self.rights_as_named(place, caller);
        let Some(target) = &place.target else { return named };
        let there = self.rights(target, caller);
        Rights { read: named.read && there.read, write: named.write && there.write }
    }

    fn rights_as_named(&self, place: &Place, caller: &Caller) -> Rights {
        let Caller::User(user) = caller else { return ALL };
        if user.role == Role::Admin || place.owner.as_deref() == Some(user.name.as_str()) {
            return ALL;
        }
        match place.group.and_then(|group| self.groups.get(group)) {
            Some(group) => group.rights(user),
            None => Rights { read: place.owner.is_none(), write: false },
        }
    }

    /// Refuses callers that may not read.
    pub(crate) fn check_read(&self, place: &Place, caller: &Caller) -> Result<(), Refusal> {
        if self.rights(place, caller).read { Ok(()) } else { Err(place.refusal()) }
    }

    /// Refuses callers that may not write.
    pub(crate) fn check_write(&self, path: &str, caller: &Caller) -> Result<(), Refusal> {
        let place = self.place(path);
        match self.rights(&place, caller) {
            Rights { write: true, .. } => Ok(()),
            Rights { read: true, .. } => Err(Refusal::Forbidden),
            _ => Err(place.refusal()),
        }
    }

    /// Whether to show a folder to a caller, who may read it or something in it.
    pub(crate) fn shows_folder(&self, path: &str, caller: &Caller) -> bool {
        let Caller::User(user) = caller else { return true };
        let within = |group: &Group| contains(path, &group.path) && group.rights(user).read;
        path.is_empty()
            || path == USERS
            || self.rights(&self.place(path), caller).read
            || self.groups.iter().any(within)
    }

    /// Whether to show a file to a caller.
    pub(crate) fn shows_file(&self, path: &str, caller: &Caller) -> bool {
        self.rights(&self.place(path), caller).read
    }
}

impl Group {
    fn rights(&self, user: &User) -> Rights {
        let mut rights = Rights::default();
        for rule in self.rules.iter().filter(|rule| rule.is_for(user)) {
            rights.read |= rule.may.read;
            rights.write |= rule.may.write;
        }
        rights
    }
}

impl Rule {
    fn is_for(&self, user: &User) -> bool {
        let everybody = self.users.is_empty() && self.roles.is_empty();
        everybody || self.roles.contains(&user.role) || self.users.contains(&user.name)
    }
}

impl Place {
    /// The response does not reveal whether something exists in another user's folder, or where a link leads.
    fn refusal(&self) -> Refusal {
        let hides = self.owner.is_some() || self.target.is_some();
        if hides { Refusal::NotFound } else { Refusal::Forbidden }
    }
}

/// The folder of a user. `None` if no folder can have their name.
pub(crate) fn own_folder(name: &str) -> Option<String> {
    let usable = !matches!(name, "" | "." | "..") && !folder::is_reserved_name(name);
    usable.then(|| format!("{USERS}/{name}"))
}

/// Whether a path is a user's folder or the folder that contains them all.
pub(crate) fn is_users_folder(path: &str) -> bool {
    path == USERS || owner(path).is_some_and(|owner| path.len() == USERS.len() + 1 + owner.len())
}

/// The user whose folder contains a path.
pub(crate) fn owner(path: &str) -> Option<&str> {
    let within = path.strip_prefix(USERS)?.strip_prefix('/')?;
    within.split('/').next()
}

/// Whether a path is `folder` or lies in it.
fn contains(folder: &str, path: &str) -> bool {
    let Some(rest) = path.strip_prefix(folder) else { return false };
    folder.is_empty() || rest.is_empty() || rest.starts_with('/')
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use proptest::prelude::*;

    use super::*;

    fn user(name: &str, role: Role) -> Caller {
        Caller::User(Rc::new(User { name: name.into(), role, quota_bytes: None }))
    }

    fn rights(permissions: &Permissions, path: &str, caller: &Caller) -> (bool, bool) {
        let Rights { read, write } = permissions.rights(&permissions.place(path), caller);
        (read, write)
    }

    #[test]
    fn without_rules_users_read_shared_files_and_own_their_folder() {
        let none = Permissions::default();
        let (ann, admin) = (user("ann", Role::User), user("root", Role::Admin));
        for (path, expected) in [
            ("", (true, false)),
            ("a/b.txt", (true, false)),
            ("users", (true, false)),
            ("users/ann", (true, true)),
            ("users/ann/x/y", (true, true)),
            ("users/bob", (false, false)),
            ("users/bob/x", (false, false)),
            ("users/annette/x", (false, false)),
            ("users.txt", (true, false)),
            ("a/users/bob/x", (true, false)),
        ] {
            assert_eq!(rights(&none, path, &ann), expected, "{path}");
            assert_eq!(rights(&none, path, &admin), (true, true), "{path}");
            assert_eq!(rights(&none, path, &Caller::Anyone), (true, true), "{path}");
        }
    }

    #[test]
    fn the_rules_with_the_longest_path_apply() {
        let rules: Permissions = r#"
            [[rule]]
            path = "/"
            may = ["read"]
            [[rule]]
            path = "/reports/"
            users = ["ann"]
            may = ["read", "write"]
            [[rule]]
            path = "/reports"
            roles = ["user"]
            may = ["read"]
            [[rule]]
            path = "/reports/secret"
            users = ["bob"]
            may = ["read"]
            [[rule]]
            path = "/users/bob/open"
            users = ["ann"]
            may = ["read"]
        "#
        .parse()
        .unwrap();
        let (ann, bob) = (user("ann", Role::User), user("bob", Role::User));
        for (path, anns, bobs) in [
            ("x", (true, false), (true, false)),
            ("reports/x", (true, true), (true, false)),
            ("reports/secret/x", (false, false), (true, false)),
            ("reports/secrets", (true, true), (true, false)),
            ("users/bob/x", (false, false), (true, true)),
            ("users/bob/open/x", (true, false), (true, true)),
            ("users/carol/x", (false, false), (false, false)),
        ] {
            assert_eq!(rights(&rules, path, &ann), anns, "ann, {path}");
            assert_eq!(rights(&rules, path, &bob), bobs, "bob, {path}");
        }
        assert!(rules.shows_folder("users/bob", &ann), "it leads to what she may read");
        assert!(!rules.shows_folder("users/carol", &ann) && !rules.shows_folder("reports/secret", &ann));
    }

    #[test]
    fn files_of_others_are_not_found_and_closed_folders_are_forbidden() {
        let shut: Permissions = "[[rule]]\npath = \"/shut\"\nmay = []\n".parse().unwrap();
        let ann = user("ann", Role::User);
        let read = |path| shut.check_read(&shut.place(path), &ann);
        assert!(matches!(read("users/bob/x"), Err(Refusal::NotFound)));
        assert!(matches!(read("shut/x"), Err(Refusal::Forbidden)));
        assert!(matches!(shut.check_write("users/bob/x", &ann), Err(Refusal::NotFound)));
        assert!(matches!(shut.check_write("x", &ann), Err(Refusal::Forbidden)));
        assert!(shut.check_write("users/ann/x", &ann).is_ok());
    }

    #[test]
    fn names_that_no_folder_can_have_get_none() {
        assert_eq!(own_folder("ann").as_deref(), Some("users/ann"));
        for name in ["..", ".", "", ".nstar-uploads"] {
            assert_eq!(own_folder(name), None, "{name}");
        }
        assert!(is_users_folder("users") && is_users_folder("users/ann"));
        assert!(!is_users_folder("users/ann/x") && !is_users_folder("usersx") && !is_users_folder("a"));
    }

    fn a_path() -> impl Strategy<Value = String> {
        proptest::collection::vec(prop_oneof!["users", "ann", "bob", "[ab]"], 0..5)
            .prop_map(|names| names.join("/"))
    }

    proptest! {
        /// Compares the rights with a slow and plain version of the documented rules.
        #[test]
        fn rights_are_as_documented(
            rules in proptest::collection::vec((a_path(), prop_oneof!["ann", "bob", ""], any::<(bool, bool)>()), 0..6),
            path in a_path()
        ) {
            let written: String = rules.iter().map(|(path, user, (read, write))| {
                let users = if user.is_empty() { String::new() } else { format!("users = [\"{user}\"]\n") };
                let may: Vec<_> = [(*read, "\"read\""), (*write, "\"write\"")]
                    .into_iter().filter_map(|(may, name)| may.then_some(name)).collect();
                format!("[[rule]]\npath = \"/{path}\"\n{users}may = [{}]\n", may.join(", "))
            }).collect();
            let permissions: Permissions = written.parse().unwrap();

            let names: Vec<&str> = path.split('/').collect();
            let own = |names: &[&str]| names.len() >= 2 && names[0] == "users";
            let holding: Vec<_> = rules.iter().filter(|(rule, ..)| {
                let rule: Vec<&str> = rule.split('/').filter(|name| !name.is_empty()).collect();
                let names: Vec<&str> = names.iter().copied().filter(|name| !name.is_empty()).collect();
                names.starts_with(&rule) && (!own(&names) || own(&rule))
            }).collect();
            let longest = holding.iter().map(|(rule, ..)| rule.split('/').filter(|n| !n.is_empty()).count()).max();
            let expected = if own(&names) && names[1] == "ann" {
                (true, true)
            } else if let Some(longest) = longest {
                let counting = holding.iter().filter(|(rule, user, _)| {
                    rule.split('/').filter(|n| !n.is_empty()).count() == longest && user != "bob"
                });
                counting.fold((false, false), |sum, (_, _, may)| (sum.0 | may.0, sum.1 | may.1))
            } else {
                (!own(&names), false)
            };
            prop_assert_eq!(rights(&permissions, &path, &user("ann", Role::User)), expected);
        }
    }
}
