use std::{os::unix::fs::PermissionsExt, sync::OnceLock};

use super::*;

/// A shared folder without threads: the tests walk and hash themselves.
struct TestFolder {
    folder: tempfile::TempDir,
    shared: SharedFolder,
    watch: Watch,
    jobs: Jobs,
    waiting: Receiver<WalkedFile>,
}

/// A clock that stands still.
fn frozen() -> Instant {
    static NOW: OnceLock<Instant> = OnceLock::new();
    *NOW.get_or_init(Instant::now)
}

impl TestFolder {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("files")).unwrap();
        fs::create_dir(folder.path().join("state")).unwrap();
        let (root, state) = (folder.path().join("files"), folder.path().join("state"));
        let mut shared = SharedFolder::open(Folder::open(&root).unwrap(), &root, &state).unwrap();
        shared.clock = frozen;
        let (small, waiting) = mpsc::channel();
        let jobs = Jobs { large: small.clone(), small };
        Self { folder, shared, watch: Watch::new().unwrap(), jobs, waiting }
    }

    fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    /// Walks once, and returns the next file to hash.
    fn walk(&self) -> Option<WalkedFile> {
        self.shared.walk(&self.watch, &self.jobs);
        self.waiting.try_recv().ok()
    }

    /// Walks until a file has been unchanged for long enough, and tries to hash it.
    fn try_next(&self) {
        let next = std::iter::repeat_with(|| self.walk()).take(100_000).flatten().next();
        let next = next.expect("something to be hashed");
        self.shared.try_to_hash(&next);
        self.shared.in_progress().remove(&next.path);
    }
}

#[test]
fn a_file_whose_hashes_cannot_be_kept_is_left_alone_until_it_changed_and_that_is_told() {
    let test = TestFolder::new();
    // Long enough to have an outboard.
    fs::write(test.path("files/a"), vec![1; 100_000]).unwrap();
    fs::rename(test.path("state/outboards"), test.path("state/away")).unwrap();
    test.try_next();
    let warning = test.shared.warning().unwrap();
    assert!(warning.contains("1 of the files") && warning.contains("hashes cannot be saved"), "{warning}");
    for _ in 0..10 {
        assert!(test.walk().is_none(), "as it was");
    }
    fs::rename(test.path("state/away"), test.path("state/outboards")).unwrap();
    fs::set_permissions(test.path("files/a"), fs::Permissions::from_mode(0o600)).unwrap();
    test.try_next();
    assert_eq!((test.shared.catalogue.len(), test.shared.warning()), (1, None));
}

#[test]
fn a_file_that_was_removed_while_it_was_hashed_is_not_shared_for_long() {
    let test = TestFolder::new();
    fs::write(test.path("files/a"), "private").unwrap();
    test.try_next();
    assert_eq!(test.shared.catalogue.len(), 1);
    test.shared.journal.remove("a").unwrap();
    assert!(test.walk().is_none());
    assert_eq!(test.shared.catalogue.len(), 0);
}

#[test]
fn what_is_obtained_in_place_of_a_file_that_was_removed_and_deleted_is_shared_at_once() {
    let test = TestFolder::new();
    for (name, bytes) in [("a", "private"), ("b", "private too")] {
        fs::write(test.path("files").join(name), bytes).unwrap();
        test.try_next();
        test.shared.remove(name).unwrap();
    }
    fs::remove_file(test.path("files/a")).unwrap();
    for name in ["a", "b"] {
        test.shared.make_way(name).unwrap();
    }
    fs::write(test.path("files/a"), "public").unwrap();
    test.try_next();
    assert_eq!(test.shared.catalogue.paths(), HashSet::from(["a".to_owned()]), "b is still there");
}

#[test]
fn damaged_hashes_are_found_at_the_next_start_and_made_again() {
    let test = TestFolder::new();
    fs::write(test.path("files/a"), vec![1; 100_000]).unwrap();
    test.try_next();
    let content = Content::of(&[1; 100_000]);
    let kept = test.path("state").join(Outboards::path(&content));
    let right = fs::read(&kept).unwrap();
    // As a power failure leaves them that came before they were on the disk.
    fs::write(&kept, vec![0; right.len()]).unwrap();

    let (root, state) = (test.path("files"), test.path("state"));
    let shared = SharedFolder::open(Folder::open(&root).unwrap(), &root, &state).unwrap();
    let again = TestFolder { shared, ..test };
    again.try_next();
    assert_eq!((fs::read(&kept).unwrap(), again.shared.catalogue.len()), (right, 1));
}

#[test]
fn hashes_of_what_changed_since_are_cleaned_away_while_the_peer_runs() {
    let test = TestFolder::new();
    for byte in 1..=5 {
        fs::write(test.path("files/a"), vec![byte; 100_000]).unwrap();
        test.try_next();
    }
    let kept = || fs::read_dir(test.path("state/outboards")).unwrap().count();
    assert_eq!(kept(), 5);
    test.shared.clean();
    test.shared.clean();
    assert_eq!((kept(), test.shared.catalogue.len()), (1, 1));
}

#[test]
fn the_hashes_of_what_is_being_obtained_are_kept() {
    let test = TestFolder::new();
    let content = Content::of(b"x");
    test.shared.keep_outboard(&content, &[7; 64]).unwrap();
    fs::create_dir(test.shared.partials()).unwrap();
    fs::write(test.shared.partials().join(format!("{content}.data")), "x").unwrap();
    for _ in 0..3 {
        test.shared.clean();
    }
    assert!(test.path("state").join(Outboards::path(&content)).exists());
}

#[test]
fn where_another_folder_is_at_the_path_nothing_is_shared_and_that_is_told_until_it_is_back() {
    let test = TestFolder::new();
    fs::write(test.path("files/a"), "1").unwrap();
    fs::write(test.path("files/b"), "2").unwrap();
    test.try_next();
    test.try_next();
    test.shared.remove("b").unwrap();
    fs::rename(test.path("files"), test.path("away")).unwrap();
    assert!(test.walk().is_none());
    let warning = test.shared.warning().unwrap();
    assert!(warning.contains("cannot be found") && warning.contains("start the peer again"), "{warning}");
    fs::create_dir(test.path("files")).unwrap();
    fs::write(test.path("files/c"), "3").unwrap();
    assert!(test.walk().is_none());
    let warning = test.shared.warning().unwrap();
    assert!(warning.contains("is another folder") && test.shared.catalogue.len() == 0, "{warning}");

    fs::remove_dir_all(test.path("files")).unwrap();
    fs::rename(test.path("away"), test.path("files")).unwrap();
    assert!(test.walk().is_none(), "nothing is hashed anew");
    assert_eq!((test.shared.catalogue.paths(), test.shared.warning()), (["a".into()].into(), None));
}
