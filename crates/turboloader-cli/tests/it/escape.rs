//! Hostile names in every kind of container, and every command that writes files: nothing outside
//! the target folder is made or changed.
//!
//! The names come from a seeded generator. `TURBOLOADER_ESCAPE_NAMES` sets how many; 10,000 take
//! about a minute.

mod hostile;

use std::ffi::OsString;
use std::fs::{self, File};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::support::tar;
use hostile::{Generator, tbl};

/// Names that an ordinary run of the tests tries.
const NAMES: u32 = 500;

/// Set for the process that runs the commands, to the folder that everything happens in.
const WORKER: &str = "TURBOLOADER_ESCAPE_WORKER";

/// The commands run inside one process, since starting a process for each takes ten times as long.
/// It is a separate process because the commands write to standard error.
#[test]
fn no_name_leads_out_of_the_folder() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let messages = folder.path().join("messages");
    let status = Command::new(std::env::current_exe().expect("known"))
        .args(["--exact", "escape::worker", "--nocapture", "--test-threads=1"])
        .env(WORKER, folder.path().join("world"))
        .stdout(Stdio::null())
        .stderr(File::create(&messages).expect("made"))
        .status()
        .expect("the tests start");
    let messages = fs::read(messages).expect("readable");
    let messages = String::from_utf8_lossy(&messages);
    let last: Vec<&str> = messages.lines().rev().take(12).collect();
    assert!(status.success(), "{last:#?}");
    let count = last.iter().find(|line| line.starts_with("tried "));
    println!("{}", count.expect("the worker says what it did"));
}

/// Whether a reader passes the file over for a component of its name.
fn is_hidden(name: &[u8]) -> bool {
    name.split(|&byte| byte == b'/').any(|part| {
        let is_dots = matches!(part, b"." | b"..");
        let is_system = matches!(part, b"__MACOSX" | b"Thumbs.db" | b"desktop.ini");
        is_system || (part.starts_with(b".") && !is_dots)
    })
}

#[test]
fn worker() {
    let Some(root) = std::env::var_os(WORKER) else { return };
    let world = World::new(Path::new(&root));
    let count = std::env::var("TURBOLOADER_ESCAPE_NAMES")
        .map_or(NAMES, |count| count.parse().expect("a number of names"));
    let mut generator = Generator::new(world.root.as_os_str().as_bytes());
    let mut tally = Tally::default();
    for number in 0..count {
        world.try_name(number, &generator.name(), &mut tally);
    }
    assert!(tally.unsafe_names > count / 4 && tally.written > count / 10, "{tally:?}");
    eprintln!("tried {count} names: {tally:?}");
}

#[derive(Debug, Default)]
struct Tally {
    unsafe_names: u32,
    commands: u32,
    refused: u32,
    written: u32,
}

/// Whether a name leaves its folder, decided independently of the code under test.
fn leaves(name: &[u8]) -> bool {
    name.starts_with(b"/")
        || name.contains(&0)
        || name.split(|&byte| byte == b'/').any(|component| component == b"..")
}

/// A tree with the target folder inside, so that what escapes is found.
struct World {
    root: PathBuf,
    /// The folder of the inputs, to which no name leads.
    inputs: tempfile::TempDir,
    target: PathBuf,
    before: Vec<(PathBuf, String)>,
}

impl World {
    fn new(root: &Path) -> Self {
        fs::create_dir_all(root.join("home")).expect("made");
        fs::create_dir_all(root.join("a/b")).expect("made");
        fs::write(root.join("home/.bashrc"), "untouched").expect("written");
        fs::write(root.join("a/victim.jpg"), "untouched").expect("written");
        let mut world = Self {
            root: root.to_owned(),
            inputs: tempfile::tempdir().expect("a temporary folder"),
            target: root.join("a/b/out"),
            before: Vec::new(),
        };
        world.before = world.around();
        world
    }

    /// Everything in the tree except the target folder.
    fn around(&self) -> Vec<(PathBuf, String)> {
        let (mut found, mut open) = (Vec::new(), vec![self.root.clone()]);
        while let Some(folder) = open.pop() {
            for entry in fs::read_dir(&folder).expect("readable") {
                let path = entry.expect("readable").path();
                let kind = path.symlink_metadata().expect("there").file_type();
                if path == self.target {
                    continue;
                }
                let content = if kind.is_file() { fs::read(&path).expect("read") } else { vec![] };
                found.push((path.clone(), format!("{kind:?} {content:?}")));
                if kind.is_dir() {
                    open.push(path);
                }
            }
        }
        found.sort();
        found
    }

    /// Puts `name` into one container of each kind, as what it can be there, and runs every
    /// command that writes on one of them.
    fn try_name(&self, number: u32, name: &[u8], tally: &mut Tally) {
        let with_extension = [b"k.", name].concat();
        let containers: [(&str, Vec<u8>, bool); 5] = [
            // A name that ends in a slash is that of a folder; those and hidden files are passed over.
            ("member.tar", tar(&[(b"k.txt", b"1"), (name, b"2")]), {
                leaves(name) && !name.ends_with(b"/") && !is_hidden(name)
            }),
            ("field.tar", tar(&[(b"k.jpg", b"1"), (&with_extension, b"2")]), false),
            ("names.tbl", tbl(Some(name), None, None), leaves(name)),
            ("json.tbl", tbl(None, Some(name), None), leaves(&hostile::text(name))),
            ("field.tbl", tbl(Some(b"k.jpg"), None, Some(name)), {
                name.contains(&b'/') || name.contains(&0)
            }),
        ];
        tally.unsafe_names += u32::from(leaves(name));
        let path = |file: &str| self.inputs.path().join(file);
        for (file, bytes, _) in &containers {
            fs::write(path(file), bytes).expect("written");
        }
        let commands: [&[&str]; 6] = [
            &["extract", "-f", "-o", "."],
            &["convert", "--to", "tar", "-o", "x.tar", "--no-sync"],
            &["convert", "--to", "tbl2", "-o", "x.tbl", "--no-sync"],
            &["merge", "-o", "x.tbl", "--no-sync"],
            &["split", "-o", ".", "--shards", "1", "--no-sync"],
            &["repair", "-o", "x.out", "--no-sync"],
        ];
        for (turn, command) in (0..).zip(commands) {
            // Over five names, every command meets every container.
            let (file, _, is_unsafe) = &containers[(number as usize + turn) % containers.len()];
            let is_unsafe = *is_unsafe && command[0] != "repair";
            tally.commands += 1;
            let code = self.run(command, &path(file), tally);
            let shown = || format!("{command:?} {file} {}", name.escape_ascii());
            assert!(code <= 2, "{code}: {}", shown());
            assert_eq!(self.around(), self.before, "{}", shown());
            let is_field = *file == "field.tar" && !name.contains(&b'/');
            if is_unsafe || (is_field && name.contains(&0)) {
                assert!(code == 1 || command[0] == "repair", "{code}: {}", shown());
            }
            tally.refused += u32::from(code != 0);
            let written = self.check_written(&shown);
            assert!(!is_unsafe || written == 0, "{}", shown());
            tally.written += u32::from(written > 0);
            fs::remove_dir_all(&self.target).expect("removed");
        }
        let (file, _, is_unsafe) = &containers[number as usize % containers.len()];
        let code = self.run(&["verify"], &path(file), tally);
        assert!(!is_unsafe || code == 1, "verify: {file} {}", name.escape_ascii());
        fs::remove_dir_all(&self.target).expect("removed");
    }

    /// Runs a command in a new target folder, in which links lead out. The paths among its
    /// arguments are relative to the folder.
    fn run(&self, command: &[&str], input: &Path, _: &mut Tally) -> u8 {
        fs::create_dir(&self.target).expect("made");
        symlink(self.root.join("home"), self.target.join("link")).expect("linked");
        symlink(self.root.join("a/victim.jpg"), self.target.join("file.jpg")).expect("linked");
        let mut arguments: Vec<OsString> = vec!["tl".into()];
        let mut is_output = false;
        for argument in command {
            arguments.push(match is_output {
                true => self.target.join(argument).into(),
                false => argument.into(),
            });
            is_output = *argument == "-o";
        }
        arguments.push(input.into());
        turboloader_cli::tl_with(arguments)
    }

    /// Checks that archives in the target folder hold no name that leaves a folder, and returns
    /// how many files a command has made.
    fn check_written(&self, shown: &dyn Fn() -> String) -> u32 {
        let (mut count, mut open) = (0, vec![self.target.clone()]);
        while let Some(folder) = open.pop() {
            for entry in fs::read_dir(&folder).expect("readable") {
                let path = entry.expect("readable").path();
                let kind = path.symlink_metadata().expect("there").file_type();
                if kind.is_dir() {
                    open.push(path);
                    continue;
                }
                count += u32::from(kind.is_file());
                let archive = kind.is_file().then(|| fs::read(&path).expect("readable"));
                if let Some(bytes) = archive.filter(|bytes| bytes.get(257..262) == Some(b"ustar")) {
                    let mut members = tar::Archive::new(&*bytes);
                    for member in members.entries().expect("an archive") {
                        let member = member.expect("a member");
                        assert!(!leaves(&member.path_bytes()), "{}", shown());
                    }
                }
            }
        }
        count
    }
}

#[test]
fn folders_come_back_with_any_name_that_a_file_can_have() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let at = |name: &str| folder.path().join(name);
    let mut generator = Generator::new(b"");
    let mut expected = Vec::new();
    for number in 0..300 {
        let name: Vec<u8> =
            generator.name().into_iter().filter(|byte| !b"/.\0".contains(byte)).collect();
        let name = [&name[..name.len().min(200)], format!("_{number}.jpg").as_bytes()].concat();
        let path = at("in").join(OsString::from_vec(name.clone()));
        fs::create_dir_all(at("in")).expect("made");
        fs::write(path, number.to_string()).expect("written");
        expected
            .push((String::from_utf8_lossy(&name).into_owned(), number.to_string().into_bytes()));
    }
    expected.sort();
    let run = |arguments: &[&std::ffi::OsStr]| crate::support::tl(arguments).good();
    run(&["extract".as_ref(), at("in").as_ref(), "-o".as_ref(), at("out").as_ref()]);
    assert_eq!(crate::support::files_below(&at("out")), expected);
}
