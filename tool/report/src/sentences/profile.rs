//! Sentences on where the processor time of each tier goes, and where its threads sleep.

use analysis::run::{
    CutShort, Function, HotFunction, Identity, Profile, ProfileTrouble, Run, TierOffCpu, TierProfile,
};

use super::{holders, off_cpu};
use crate::number::{self, percent};

/// Names are cut to so many characters: those of C++ and Rust hold whole types.
const NAME_MAX: usize = 80;

/// What the profile says of the verdict: the tier that holds the bottleneck, or else the busiest, and what is missing.
pub(crate) fn profile(run: &Run) -> Option<String> {
    Some(profile_of(run.profile.as_ref()?, run.verdict.bottleneck.identity.as_ref()))
}

/// The same of a profile whose server is stopped by this.
pub(crate) fn profile_of(profile: &Profile, bottleneck: Option<&Identity>) -> String {
    let told = holder(profile, bottleneck).map(tier);
    told.into_iter().chain(troubles(profile)).collect::<Vec<_>>().join(" ")
}

/// Where the threads of the tier that holds the bottleneck slept, or else of the first.
pub(crate) fn asleep(run: &Run) -> Option<String> {
    asleep_of(run.profile.as_ref()?, run.verdict.bottleneck.identity.as_ref())
}

/// The same of a profile whose server is stopped by this.
pub(crate) fn asleep_of(profile: &Profile, bottleneck: Option<&Identity>) -> Option<String> {
    let seen = profile.off_cpu.as_ref()?;
    let holder = bottleneck.and_then(Identity::processes);
    let is_holder = |tier: &&TierOffCpu| holder.is_some_and(|of| of.are(&tier.processes));
    let tier = seen.tiers.iter().find(is_holder).or(seen.tiers.first())?;
    let told = std::iter::once(off_cpu::tier(tier)).chain(off_cpu::grave_troubles(seen));
    Some(told.collect::<Vec<_>>().join(" "))
}

fn holder<'a>(profile: &'a Profile, bottleneck: Option<&Identity>) -> Option<&'a TierProfile> {
    let holder = bottleneck.and_then(|identity| identity.processes());
    let is_holder = |tier: &&TierProfile| holder.is_some_and(|of| of.are(&tier.processes));
    profile.tiers.iter().find(is_holder).or(profile.tiers.first())
}

/// `41 % (38–45 %) of nginx’s CPU is in deflate_slow (libz.so.1), called from ngx_http_gzip_body_filter.`, or, on another host,
/// `41 % (38–45 %) of the CPU time of nginx on web is in ..`
pub(crate) fn tier(of: &TierProfile) -> String {
    let name = &of.processes.name;
    let whole = holders::named_on(name, &of.processes.on);
    let in_kernel = |share| format!(" {} of all of it is in the kernel.", percent(share));
    let kernel = of.kernel_share.map_or_else(String::new, in_kernel);
    let cut_short = of.cut_short.filter(CutShort::is_notable).map_or_else(String::new, cut_short);
    let Some(HotFunction { function, share, share_ci, caller }) = &of.hottest else {
        return format!("No function of {whole} could be told.{kernel}{cut_short}");
    };
    let whose = match of.processes.on {
        None => format!("{name}’s CPU"),
        Some(_) => format!("the CPU time of {whole}"),
    };
    let caller =
        caller.as_ref().map_or_else(String::new, |caller| format!(", called from {}", called(caller, name)));
    let to_name = if is_made_unnamed(function) { NAMES_OF_MADE } else { "" };
    format!(
        "{} ({}) of {whose} is in {}{caller}.{to_name}{kernel}{cut_short}",
        percent(*share),
        number::percent_interval(*share_ci),
        called(function, name)
    )
}

/// ` 12 % of the stacks end before their outermost callers: 30 in code without unwind tables or frame pointers.`
fn cut_short(of: CutShort) -> String {
    let told = |samples: u64, why: &str| (samples > 0).then(|| format!("{} {why}", number::count(samples)));
    let reasons = [
        told(of.untold, "in code without unwind tables or frame pointers"),
        told(of.too_deep, "where the copy of the stack ends"),
        told(of.not_in_time, "where there was no time to read the tables"),
    ];
    let reasons: Vec<_> = reasons.into_iter().flatten().collect();
    format!(
        " {} of the stacks end before their outermost callers: {}.",
        percent(of.share),
        reasons.join(", ")
    )
}

/// What gives names to code that was made as the program ran.
const NAMES_OF_MADE: &str = " A map that the runtime writes would name it: `node --perf-basic-prof`, `python3 -X perf` \
                             (from 3.12 on), an agent for Java.";

/// Whether it stands for all code without names that was made as the program ran.
fn is_made_unnamed(of: &Function) -> bool {
    of.name.is_empty() && of.offset.is_none() && of.module.starts_with('[')
}

/// A function within a sentence of a tier.
fn called(of: &Function, tier: &str) -> String {
    let Function { name, module, offset, .. } = of;
    match (name.is_empty(), offset) {
        // Code that was made as the program ran is in no file.
        (false, _) if module == tier || module.starts_with('[') => format!("`{}`", short(name)),
        (false, _) => format!("`{}` ({})", short(name), short(module)),
        (true, Some(offset)) => format!("code without a name at {}+{offset:#x}", short(module)),
        (true, None) if is_made_unnamed(of) => "code made at run time, which has no name".to_owned(),
        (true, None) => format!("code without a name in {}", short(module)),
    }
}

/// A function by itself: `deflate_slow`, `libz.so.1+0x5000`.
pub(crate) fn function(of: &Function) -> String {
    let Function { name, module, offset, .. } = of;
    match (name.is_empty(), offset) {
        (false, _) => name.clone(),
        (true, Some(offset)) => format!("{module}+{offset:#x}"),
        (true, None) if module.is_empty() => "[unknown]".to_owned(),
        (true, None) => format!("[{}]", module.trim_matches(['[', ']'])),
    }
}

/// Text of at most [`NAME_MAX`] characters.
pub(crate) fn short(name: &str) -> String {
    match name.char_indices().nth(NAME_MAX) {
        Some((end, _)) => format!("{}…", name.get(..end).unwrap_or_default()),
        None => name.to_owned(),
    }
}

/// What is missing, a sentence each.
pub(crate) fn troubles(of: &Profile) -> Vec<String> {
    of.troubles.iter().map(trouble).collect()
}

fn trouble(of: &ProfileTrouble) -> String {
    let level = |paranoid: &Option<i32>| {
        paranoid.map_or_else(String::new, |level| format!(" (kernel.perf_event_paranoid is {level})"))
    };
    match of {
        ProfileTrouble::Refused { paranoid } => format!(
            "Where the CPU time goes is not known: the kernel lets this user sample none of these processes{}. Run nstar as \
             root, or set kernel.perf_event_paranoid to 2 or less for processes of your own.",
            level(paranoid)
        ),
        ProfileTrouble::WithoutKernel { paranoid } => format!(
            "The kernel’s part of the CPU time is not in the profile{}: as root, or with 1, it would be.",
            level(paranoid)
        ),
        ProfileTrouble::KernelUnnamed => {
            "The kernel hides where its functions are, so its part of the CPU time has no names: run nstar as root with \
             kernel.kptr_restrict at 1 or less, or set that to 0."
                .to_owned()
        }
        ProfileTrouble::Unavailable { os_error } => format!(
            "Where the CPU time goes is not known: the kernel cannot sample here (perf_event_open fails with error {os_error})."
        ),
        ProfileTrouble::TooManyThreads { left_out } => format!(
            "{} threads are not in the profile: raise the limit on open files (ulimit -n).",
            number::count(*left_out)
        ),
        ProfileTrouble::NoRoom { left_out, of } => no_room(*left_out, *of),
        ProfileTrouble::Lost { samples } => format!("{} samples were lost.", number::count(*samples)),
        ProfileTrouble::FramePointersAlone => {
            "Callers are those that frame pointers show: the kernel or the processor lets no stack be copied here.".to_owned()
        }
        ProfileTrouble::Ended { processes } => format!(
            "Functions of {} processes that ended meanwhile could not be named.",
            number::count((*processes).into())
        ),
        ProfileTrouble::NotHere => {
            "Where the CPU time goes is not known: none of the server’s processes was seen here.".to_owned()
        }
        ProfileTrouble::Elsewhere { tiers } => {
            let names: Vec<_> = tiers.iter().map(holders::processes).collect();
            format!("Only this host is profiled, and not {}.", names.join(", "))
        }
        ProfileTrouble::OnHost { host, trouble } => format!("{host}: {}", self::trouble(trouble)),
        ProfileTrouble::NotBuilt | ProfileTrouble::NotAnswered { .. } | ProfileTrouble::Malformed => {
            format!("Where the CPU time goes is not known: {}.", untold(of))
        }
        ProfileTrouble::Idle => "Nothing of the server took CPU time that a profile could show.".to_owned(),
        ProfileTrouble::ShortLived => {
            "No CPU time was seen: nstar may sample only each thread by itself here, and those of the server may live for less \
             than 10 ms. Run it as root, or set kernel.perf_event_paranoid to 0, to see them."
                .to_owned()
        }
        ProfileTrouble::Unknown => "A newer version of nstar says more about the profile.".to_owned(),
    }
}

fn no_room(left_out: u32, of: u32) -> String {
    let what = match left_out == of {
        true => "Where the CPU time goes is not known".to_owned(),
        false => format!("The CPU time of {left_out} of {of} processors is not in the profile"),
    };
    format!(
        "{what}: the kernel lets this user lock no more memory for samples. End other programs that sample, run nstar as root, \
         or raise kernel.perf_event_mlock_kb."
    )
}

/// Why an agent told nothing.
fn untold(of: &ProfileTrouble) -> String {
    match of {
        ProfileTrouble::NotBuilt => "nstar there was built without profiles".to_owned(),
        // Whoever measured was interrupted.
        ProfileTrouble::NotAnswered { waited_s: Some(0) } => "the agent there was not waited for".to_owned(),
        ProfileTrouble::NotAnswered { waited_s: Some(waited_s) } => {
            format!("the agent there did not tell it within {waited_s} s")
        }
        ProfileTrouble::NotAnswered { waited_s: None } => "the agent there ended before it told".to_owned(),
        _ => "what the agent there told of it cannot be".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use analysis::run::Processes;

    use super::*;

    fn function(name: &str, module: &str) -> Function {
        Function { name: name.into(), module: module.into(), ..Function::default() }
    }

    fn of(function: Function, caller: Option<Function>) -> TierProfile {
        let hottest = HotFunction { function, share: 0.412, share_ci: [0.38, 0.45], caller };
        let processes = Processes { name: "nginx".into(), ..Processes::default() };
        TierProfile { processes, hottest: Some(hottest), ..TierProfile::default() }
    }

    #[test]
    fn the_hottest_function_is_named_with_its_library_and_caller() {
        let filter = function("ngx_http_gzip_body_filter", "nginx");
        let told = tier(&of(function("deflate_slow", "libz.so.1"), Some(filter)));
        assert_eq!(
            told.replace('\u{202f}', " "),
            "41 % (38–45 %) of nginx’s CPU is in `deflate_slow` (libz.so.1), called from `ngx_http_gzip_body_filter`."
        );
    }

    #[test]
    fn code_without_a_name_is_told_by_its_place() {
        let place = Function { offset: Some(0x5000), ..function("", "libz.so.1") };
        let told = TierProfile { kernel_share: Some(0.2), ..of(place, None) };
        assert_eq!(
            tier(&told).replace('\u{202f}', " "),
            "41 % (38–45 %) of nginx’s CPU is in code without a name at libz.so.1+0x5000. 20 % of all of it is in the kernel."
        );
    }

    #[test]
    fn code_made_at_run_time_is_told_with_what_would_name_it() {
        let made = TierProfile { kernel_share: Some(0.2), ..of(function("", "[anonymous]"), None) };
        assert_eq!(
            tier(&made).replace('\u{202f}', " "),
            "41 % (38–45 %) of nginx’s CPU is in code made at run time, which has no name. A map that the runtime writes would \
             name it: `node --perf-basic-prof`, `python3 -X perf` (from 3.12 on), an agent for Java. 20 % of all of it is in the \
             kernel."
        );
        let named = tier(&of(function("JS:*slow n.js:1", "[anonymous]"), None));
        assert!(!named.contains("A map that the runtime"), "{named}");
    }

    #[test]
    fn a_kernel_without_names_is_told_with_what_would_name_it() {
        let told = trouble(&ProfileTrouble::KernelUnnamed);
        assert!(told.contains("as root") && told.contains("kernel.kptr_restrict at 1 or less"), "{told}");
    }

    #[test]
    fn stacks_that_are_cut_short_are_told_where_they_are_many() {
        let cut = |share, untold| Some(CutShort { share, untold, too_deep: 1, not_in_time: 0 });
        let with = |cut_short| tier(&TierProfile { cut_short, ..of(function("hot", "nginx"), None) });
        let told = with(cut(0.12, 30)).replace('\u{202f}', " ");
        let end = " 12 % of the stacks end before their outermost callers: 30 in code without unwind tables or frame \
                   pointers, 1 where the copy of the stack ends.";
        assert!(told.ends_with(end), "{told}");
        assert_eq!(with(cut(0.01, 3)), with(None));
    }

    #[test]
    fn a_tier_on_another_host_is_named_with_it() {
        let far = |of: TierProfile| {
            let processes = Processes { on: Some("web".into()), ..of.processes };
            TierProfile { processes, ..of }
        };
        let there = far(of(function("deflate_slow", "nginx"), None));
        let told = tier(&there).replace('\u{202f}', " ");
        assert_eq!(told, "41 % (38–45 %) of the CPU time of nginx on web is in `deflate_slow`.");
        let nothing = TierProfile { hottest: None, ..there };
        assert_eq!(tier(&nothing), "No function of nginx on web could be told.");
    }

    #[test]
    fn the_holder_is_told_of_its_own_host() {
        let on = |host: Option<&str>, name: &str| {
            let tier = of(function(name, "nginx"), None);
            let processes = Processes { on: host.map(str::to_owned), ..tier.processes };
            TierProfile { processes, ..tier }
        };
        let tiers = vec![on(None, "here"), on(Some("a"), "there"), on(Some("b"), "elsewhere")];
        let holder = Identity::Thread(tiers[2].processes.clone());
        let profile = Profile { tiers, ..Profile::default() };
        let told = profile_of(&profile, Some(&holder));
        assert!(told.contains("nginx on b is in `elsewhere`"), "{told}");
    }

    #[test]
    fn what_is_missing_on_another_host_is_told_with_its_name() {
        let on_web = |of| trouble(&ProfileTrouble::OnHost { host: "web".into(), trouble: Box::new(of) });
        let told = on_web(ProfileTrouble::Refused { paranoid: Some(3) });
        assert!(told.starts_with("web: Where") && told.contains("perf_event_paranoid is 3"), "{told}");
        let told = on_web(ProfileTrouble::NotAnswered { waited_s: Some(20) });
        assert!(told.ends_with("the agent there did not tell it within 20 s."), "{told}");
        let told = on_web(ProfileTrouble::NotAnswered { waited_s: Some(0) });
        assert!(told.ends_with("the agent there was not waited for."), "{told}");
    }

    #[test]
    fn memory_that_may_not_be_locked_is_no_missing_right_to_sample() {
        let told = |left_out, of| trouble(&ProfileTrouble::NoRoom { left_out, of });
        for told in [told(8, 8), told(2, 8)] {
            assert!(told.contains("raise kernel.perf_event_mlock_kb"), "{told}");
            assert!(!told.contains("paranoid"), "{told}");
        }
        assert!(told(8, 8).starts_with("Where the CPU time goes is not known: "), "{}", told(8, 8));
        assert!(told(2, 8).starts_with("The CPU time of 2 of 8 processors is not in"), "{}", told(2, 8));
    }

    #[test]
    fn a_refusal_says_what_would_allow_it() {
        let told = trouble(&ProfileTrouble::Refused { paranoid: Some(3) });
        assert!(told.contains("kernel.perf_event_paranoid is 3") && told.contains("as root"), "{told}");
    }
}
