use std::{os::unix::fs::PermissionsExt, sync::OnceLock};

use super::*;

/// A folder that is shared, and who looks through it, but no thread that hashes: that is done here.
struct Shared {
    folder: tempfile::TempDir,
    sharing: Sharing,
    watch: Watch,
    jobs: Jobs,
    waiting: Receiver<Seen>,
}

/// No time passes.
fn frozen() -> Instant {
    static NOW: OnceLock<Instant> = OnceLock::new();
    *NOW.get_or_init(Instant::now)
}

impl Shared {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("files")).unwrap();
        fs::create_dir(folder.path().join("state")).unwrap();
        let (root, state) = (folder.path().join("files"), folder.path().join("state"));
        let mut sharing = Sharing::open(Folder::open(&root).unwrap(), &root, &state).unwrap();
        sharing.clock = frozen;
        let (small, waiting) = mpsc::channel();
        let jobs = Jobs { large: small.clone(), small };
        Self { folder, sharing, watch: Watch::new().unwrap(), jobs, waiting }
    }

    fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    /// What is to be hashed when it is looked once.
    fn look(&self) -> Option<Seen> {
        self.sharing.look(&self.watch, &self.jobs);
        self.waiting.try_recv().ok()
    }

    /// Looks until a file has been left alone for long enough, and tries it.
    fn try_next(&self) {
        let next = std::iter::repeat_with(|| self.look()).take(100_000).flatten().next();
        let next = next.expect("something to be hashed");
        self.sharing.try_to_hash(&next);
        self.sharing.in_hand().remove(&next.path);
    }
}

#[test]
fn a_file_whose_hashes_cannot_be_kept_is_left_alone_until_it_changed_and_that_is_told() {
    let shared = Shared::new();
    // Long enough to have hashes.
    fs::write(shared.path("files/a"), vec![1; 100_000]).unwrap();
    fs::rename(shared.path("state/outboards"), shared.path("state/away")).unwrap();
    shared.try_next();
    let trouble = shared.sharing.trouble().unwrap();
    assert!(trouble.contains("1 of the files") && trouble.contains("hashes cannot be kept"), "{trouble}");
    for _ in 0..10 {
        assert!(shared.look().is_none(), "as it was");
    }
    fs::rename(shared.path("state/away"), shared.path("state/outboards")).unwrap();
    fs::set_permissions(shared.path("files/a"), fs::Permissions::from_mode(0o600)).unwrap();
    shared.try_next();
    assert_eq!((shared.sharing.catalogue.len(), shared.sharing.trouble()), (1, None));
}

#[test]
fn hashes_of_what_changed_since_are_cleaned_away_while_the_peer_runs() {
    let shared = Shared::new();
    for byte in 1..=5 {
        fs::write(shared.path("files/a"), vec![byte; 100_000]).unwrap();
        shared.try_next();
    }
    let kept = || fs::read_dir(shared.path("state/outboards")).unwrap().count();
    assert_eq!(kept(), 5);
    shared.sharing.clean();
    shared.sharing.clean();
    assert_eq!((kept(), shared.sharing.catalogue.len()), (1, 1));
}

#[test]
fn the_hashes_of_what_is_being_obtained_are_kept() {
    let shared = Shared::new();
    let content = Content::of(b"x");
    shared.sharing.keep_outboard(&content, &[7; 64]).unwrap();
    fs::create_dir(shared.sharing.parts()).unwrap();
    fs::write(shared.sharing.parts().join(format!("{content}.data")), "x").unwrap();
    for _ in 0..3 {
        shared.sharing.clean();
    }
    assert!(shared.path("state").join(Outboards::path(&content)).exists());
}

#[test]
fn where_another_folder_is_at_the_path_nothing_is_shared_and_that_is_told_until_it_is_back() {
    let shared = Shared::new();
    fs::write(shared.path("files/a"), "1").unwrap();
    fs::write(shared.path("files/b"), "2").unwrap();
    shared.try_next();
    shared.try_next();
    shared.sharing.remove("b").unwrap();
    fs::rename(shared.path("files"), shared.path("away")).unwrap();
    assert!(shared.look().is_none());
    let trouble = shared.sharing.trouble().unwrap();
    assert!(trouble.contains("cannot be found") && trouble.contains("start the peer again"), "{trouble}");
    fs::create_dir(shared.path("files")).unwrap();
    fs::write(shared.path("files/c"), "3").unwrap();
    assert!(shared.look().is_none());
    let trouble = shared.sharing.trouble().unwrap();
    assert!(trouble.contains("is another folder") && shared.sharing.catalogue.len() == 0, "{trouble}");

    fs::remove_dir_all(shared.path("files")).unwrap();
    fs::rename(shared.path("away"), shared.path("files")).unwrap();
    assert!(shared.look().is_none(), "nothing is hashed anew");
    assert_eq!((shared.sharing.catalogue.paths(), shared.sharing.trouble()), (["a".into()].into(), None));
}
