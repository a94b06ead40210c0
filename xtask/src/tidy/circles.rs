//! Files of a crate that import each other in a circle can only be understood together: circles stay
//! small, and the modules of a crate with floors import from the floors below.

use std::collections::{BTreeMap, BTreeSet};

use super::{Problem, SourceFile};

/// Files that may import each other in a circle.
const LARGEST_CIRCLE: usize = 8;

/// The modules of a crate by floor, the upper ones first: they import from their own floor and from
/// those below.
const FLOORS: [(&str, &[&[&str]]); 1] = [(
    "tl-pipeline",
    &[
        &["observe"],
        &["report"],
        &[
            "bucketing",
            "crew",
            "epoch",
            "fetch",
            "loader",
            "metrics",
            "reader",
            "render",
            "run",
            "sample",
            "scratch",
            "shared",
            "stats",
            "videos",
            "worker",
        ],
        &["delivered", "memory_limits", "source_memory", "state", "token_gather"],
        &["device_work"],
        &["batch", "collate", "config", "device_batch", "device_part", "layout", "nvjpeg"],
        &["batching", "cache", "memory", "note", "policy", "schedule", "view"],
        &[
            "audit",
            "clips",
            "dataset",
            "error",
            "erasing",
            "fields",
            "fingerprint",
            "kept_indexes",
            "lerobot",
            "order",
            "placement",
            "row",
            "table",
            "tokens",
            "trace",
            "work",
        ],
        &[
            "bucket", "delivery", "fault", "padding", "panics", "readers", "retry", "stage",
            "threads",
        ],
    ],
)];

/// The path of a module in its crate; none for the root.
type Module = Vec<String>;

/// The imports of a crate's files.
struct Imports {
    /// By file: the modules that it imports from.
    of: BTreeMap<Module, BTreeSet<Module>>,
}

/// A `use` declaration, or a path in code.
struct Use {
    path: Vec<String>,
    is_public: bool,
}

/// All circles that are too large, and all imports from a floor above.
pub(super) fn check(files: &[SourceFile]) -> Vec<Problem> {
    let crates: BTreeSet<&str> = files.iter().filter_map(|file| Some(place(file)?.0)).collect();
    crates.into_iter().flat_map(|name| check_crate(name, files)).collect()
}

fn check_crate(name: &str, files: &[SourceFile]) -> Vec<Problem> {
    let imports = Imports::read(name, files);
    let problem = |message| Problem { path: format!("crates/{name}"), line: 0, message };
    let mut problems = Vec::new();
    let circle = imports.largest_circle();
    if circle.len() > LARGEST_CIRCLE {
        let names: Vec<String> = circle.iter().map(|module| module.join("::")).collect();
        let count = circle.len();
        problems.push(problem(format!("{count} files import each other: {}", names.join(", "))));
    }
    let floors = FLOORS.iter().find(|(of, _)| *of == name);
    problems.extend(
        floors.into_iter().flat_map(|(_, floors)| imports.upwards(floors).into_iter().map(problem)),
    );
    problems
}

/// The crate of a source file and its path below `src`, unless it has tests only.
fn place(file: &SourceFile) -> Option<(&str, &str)> {
    let (name, path) = file.path.strip_prefix("crates/")?.split_once("/src/")?;
    let path = path.strip_suffix(".rs")?;
    let last = path.rsplit('/').next()?;
    let is_test = path.contains("tests/") || ["tests", "schedules", "orderings"].contains(&last);
    let is_program = path == "main" || path.starts_with("bin/");
    (!is_test && !is_program).then_some((name, path))
}

impl Imports {
    fn read(name: &str, files: &[SourceFile]) -> Self {
        let mut texts: BTreeMap<Module, &str> = BTreeMap::new();
        for file in files {
            let Some((_, path)) = place(file).filter(|place| place.0 == name) else { continue };
            let module = match path {
                "lib" => Vec::new(),
                path => path.split('/').map(str::to_owned).collect(),
            };
            texts.insert(module, &file.text);
        }
        let modules: BTreeSet<Module> = texts.keys().cloned().collect();
        let uses_of = |(module, text)| {
            let uses = uses_of(&module, &modules, text);
            (module, uses)
        };
        let uses: BTreeMap<_, _> = texts.into_iter().map(uses_of).collect();
        let of = uses.keys().map(|module| (module.clone(), imported(module, &uses))).collect();
        Self { of }
    }

    /// The largest set of files that all reach each other.
    fn largest_circle(&self) -> BTreeSet<Module> {
        let reach: BTreeMap<_, _> = self.of.keys().map(|from| (from, self.reached(from))).collect();
        let circle = |module: &Module| -> BTreeSet<Module> {
            let reached = reach[module].iter();
            reached.filter(|other| reach[*other].contains(module)).cloned().collect()
        };
        self.of.keys().map(circle).max_by_key(BTreeSet::len).unwrap_or_default()
    }

    /// The imports from a floor above, and the modules without a floor.
    fn upwards(&self, floors: &[&[&str]]) -> Vec<String> {
        let floor = |module: &Module| {
            let first = module.first()?;
            floors.iter().position(|floor| floor.contains(&first.as_str()))
        };
        let mut messages = Vec::new();
        for (module, others) in self.of.iter().filter(|(module, _)| !module.is_empty()) {
            let name = module.join("::");
            let Some(own) = floor(module) else {
                messages.push(format!("{name} has no floor in `FLOORS`"));
                continue;
            };
            let above = others.iter().filter(|other| floor(other).is_some_and(|floor| floor < own));
            messages.extend(above.map(|other| {
                format!("{name} imports {}, which is a floor above", other.join("::"))
            }));
        }
        messages
    }

    fn reached(&self, from: &Module) -> BTreeSet<Module> {
        let (mut reached, mut left) = (BTreeSet::new(), vec![from]);
        while let Some(module) = left.pop() {
            for other in &self.of[module] {
                if reached.insert(other.clone()) {
                    left.push(other);
                }
            }
        }
        reached
    }
}

/// The files that `module` imports from. Re-exports are followed to the file that defines the name,
/// and are not imports themselves.
fn imported(module: &Module, uses: &BTreeMap<Module, Vec<Use>>) -> BTreeSet<Module> {
    let private = uses[module].iter().filter(|one| !one.is_public);
    let found = private.map(|one| defining_file(&one.path, uses, 0));
    found.filter(|other| other != module && !other.is_empty()).collect()
}

fn defining_file(path: &[String], uses: &BTreeMap<Module, Vec<Use>>, depth: u32) -> Module {
    let mut length = path.len();
    while !uses.contains_key(&path[..length]) {
        length -= 1;
    }
    let file = path[..length].to_vec();
    let Some(name) = path.get(length).filter(|_| depth < 8) else { return file };
    let exported = uses[&file].iter().find(|one| one.is_public && one.path.last() == Some(name));
    exported.map_or(file, |one| defining_file(&one.path, uses, depth + 1))
}

/// The paths within the crate that a file of `module` names, before its tests.
fn uses_of(module: &Module, modules: &BTreeSet<Module>, text: &str) -> Vec<Use> {
    let end = text.find("\nmod tests {").unwrap_or(text.len());
    let lines = text[..end].lines().map(|line| line.split("//").next().unwrap_or_default());
    // A visibility such as `pub(in crate::jpeg)` imports nothing.
    let lines = lines.map(|line| line.replace("pub(in crate::", "pub("));
    let code: String = lines.flat_map(|line| [line, "\n".to_owned()]).collect();
    let mut uses = Vec::new();
    for statement in code.split_inclusive(';') {
        let declared = statement.rfind("use ").filter(|at| is_declaration(&statement[..*at]));
        let Some(at) = declared else {
            let words = statement.split(|letter: char| !is_of_path(letter));
            let paths = words.filter(|word| word.contains("::"));
            let paths = paths.filter_map(|path| absolute(module, modules, path));
            uses.extend(paths.map(|path| Use { path, is_public: false }));
            continue;
        };
        let line = statement[..at].rsplit('\n').next().unwrap_or_default();
        let is_public = line.trim_start().starts_with("pub");
        for path in expanded(statement[at + 4..].trim_end_matches(';')) {
            uses.extend(absolute(module, modules, &path).map(|path| Use { path, is_public }));
        }
    }
    uses
}

/// Whether a `use` after this text declares imports.
fn is_declaration(before: &str) -> bool {
    let line = before.rsplit('\n').next().unwrap_or_default().trim();
    line.is_empty() || line.starts_with("pub")
}

fn is_of_path(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_' || letter == ':'
}

/// `a::{b, c::d}` as `a::b` and `a::c::d`.
fn expanded(tree: &str) -> Vec<String> {
    let Some((prefix, rest)) = tree.split_once('{') else {
        return vec![tree.split(" as ").next().unwrap_or_default().trim().to_owned()];
    };
    let (mut depth, mut start, mut parts) = (0, 0, Vec::new());
    let body = rest.trim_end().strip_suffix('}').unwrap_or(rest);
    for (at, letter) in body.char_indices().chain([(body.len(), ',')]) {
        match letter {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.extend(expanded(&body[start..at]));
                start = at + 1;
            }
            _ => {}
        }
    }
    parts
        .iter()
        .filter(|part| !part.is_empty())
        .map(|part| format!("{}{part}", prefix.trim()))
        .collect()
}

/// The path from the crate's root, if it starts with `crate`, `self`, `super` or a child of `module`.
fn absolute(module: &Module, modules: &BTreeSet<Module>, path: &str) -> Option<Vec<String>> {
    let mut parts = path.split("::").map(str::trim).peekable();
    let mut found = match *parts.peek()? {
        "crate" => {
            parts.next();
            Vec::new()
        }
        "self" => {
            parts.next();
            module.clone()
        }
        "super" => module.clone(),
        child => {
            let path = [&module[..], &[child.to_owned()]].concat();
            modules.contains(&path).then(|| module.clone())?
        }
    };
    while parts.next_if_eq(&"super").is_some() {
        found.pop();
    }
    found.extend(parts.filter(|part| !part.is_empty() && *part != "self").map(str::to_owned));
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(path: &str, text: &str) -> SourceFile {
        SourceFile { path: format!("crates/x/src/{path}.rs"), text: text.to_owned() }
    }

    #[test]
    fn imports_are_followed_to_the_file_that_defines_a_name() {
        let files = [
            source("lib", "mod a;\nmod b;\npub use a::A;\n"),
            source("a", "mod inner;\npub(crate) use inner::{Deep, Other};\n"),
            source("a/inner", "use super::super::b::B;\n"),
            source("b", "use crate::a::{Deep as D, self};\n// use crate::c::C;\nfn f() {}\n"),
            source("c", "fn f() -> crate::b::B {}\n#[cfg(test)]\nmod tests { use crate::a::A; }"),
        ];
        let imports = Imports::read("x", &files);
        let of = |module: &[&str]| {
            let module: Module = module.iter().map(|part| (*part).to_owned()).collect();
            let names: Vec<String> = imports.of[&module].iter().map(|one| one.join("::")).collect();
            names.join(" ")
        };
        assert_eq!(of(&["b"]), "a a::inner");
        assert_eq!(
            (of(&["a"]), of(&["a", "inner"]), of(&["c"])),
            ("".into(), "b".into(), "b".into())
        );
        let circle: Vec<String> =
            imports.largest_circle().iter().map(|one| one.join("::")).collect();
        assert_eq!(circle, ["a::inner", "b"]);
    }

    #[test]
    fn an_import_from_a_floor_above_is_named() {
        let files = [
            source("lib", ""),
            source("top", "use crate::middle::M;\n"),
            source("middle", "use crate::ground::G;\nuse crate::top::T;\n"),
            source("ground", ""),
        ];
        let messages = Imports::read("x", &files).upwards(&[&["top"], &["middle"]]);
        let expected =
            ["ground has no floor in `FLOORS`", "middle imports top, which is a floor above"];
        assert_eq!(messages, expected);
    }

    #[test]
    fn a_large_circle_is_named() {
        let next = |number: usize| format!("use crate::m{}::M;\n", (number + 1) % 9);
        let module = |number| source(&format!("m{number}"), &next(number));
        let nine: Vec<_> = [source("lib", "")].into_iter().chain((0..9).map(module)).collect();
        let problems = check(&nine);
        assert_eq!(problems.len(), 1);
        assert!(problems[0].message.starts_with("9 files import each other: m0, m1,"));
        assert!(check(&nine[..9]).is_empty());
    }
}
