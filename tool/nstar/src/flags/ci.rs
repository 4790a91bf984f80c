//! Flags of the files that CI shows.

use std::path::PathBuf;

use clap::Args;

/// Files that CI shows. They go with a command that has `--gate`.
#[derive(Debug, Clone, Args)]
pub struct CiFiles {
    /// File to append a summary in Markdown to, such as "$GITHUB_STEP_SUMMARY"
    #[arg(long, value_name = "FILE")]
    pub markdown: Option<PathBuf>,
    /// File to write the gates to as JUnit XML, which CI shows as tests
    #[arg(long, value_name = "FILE", requires = "gates")]
    pub junit: Option<PathBuf>,
}

impl CiFiles {
    /// Their names, for people.
    pub fn names(&self) -> Vec<String> {
        [&self.markdown, &self.junit].into_iter().flatten().map(|path| path.display().to_string()).collect()
    }
}
