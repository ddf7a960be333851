//! A copy of the workspace that has every mutant in it. A file that is as it was keeps its time, so that Cargo builds no
//! more than it must.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    path::{Path, PathBuf},
};

use crate::{
    mutant::Mutant,
    schema::{self, Variant},
};

/// Where a mutated function finds the switch: each crate has it as `crate::mutant`.
const IMPORTS: [(&str, &str); 3] = [
    ("zk-proto/src/lib.rs", "pub mod mutant;\n"),
    ("zk-client/src/lib.rs", "pub use zk_proto::mutant;\n"),
    ("zk-locks/src/lib.rs", "use zk_client::mutant;\n"),
];

/// The files that differ from the workspace's, by their names relative to it.
pub(crate) fn mutated(root: &Path, mutants: &[Mutant]) -> Result<BTreeMap<String, String>, String> {
    let read = |file: &str| {
        fs::read_to_string(root.join(file)).map_err(|error| format!("{file}: {error}"))
    };
    let mut patched: BTreeSet<&str> = BTreeSet::new();
    patched.extend(mutants.iter().flat_map(|it| &it.patches).map(|patch| &*patch.file));
    let mut files = BTreeMap::new();
    for file in patched {
        let text = read(file)?;
        let lines: Vec<&str> = text.lines().collect();
        let mut variants = Vec::new();
        for (number, Mutant { name, patches, .. }) in mutants.iter().enumerate() {
            for patch in patches.iter().filter(|patch| patch.file == file) {
                let edits = patch.edits(&lines).map_err(|error| format!("{name}: {error}"))?;
                variants.push(Variant { number, name, edits });
            }
        }
        let text = schema::merge(&text, &variants).map_err(|error| format!("{file}: {error}"))?;
        files.insert(file.to_owned(), text);
    }
    let names: Vec<&str> = mutants.iter().map(|mutant| &*mutant.name).collect();
    switched(root, files, &names)
}

/// These files, and what makes a switch of them that knows these names.
pub(crate) fn switched(
    root: &Path,
    mut files: BTreeMap<String, String>,
    names: &[&str],
) -> Result<BTreeMap<String, String>, String> {
    for (file, import) in IMPORTS {
        if !files.contains_key(file) {
            let text = fs::read_to_string(root.join(file));
            files.insert(file.to_owned(), text.map_err(|error| format!("{file}: {error}"))?);
        }
        files.entry(file.to_owned()).or_default().push_str(import);
    }
    let names = format!("const NAMES: &[&str] = &{names:?};\n");
    files
        .insert("zk-proto/src/mutant.rs".to_owned(), include_str!("switch.rs").to_owned() + &names);
    let search = "tests/src/sim/mutants/switch.rs".to_owned();
    files.insert(search, "pub(super) use zk_proto::mutant::{calls, enable, name};\n".to_owned());
    Ok(files)
}

/// Makes the copy what the workspace with these files is.
pub(crate) fn refresh(
    root: &Path,
    copy: &Path,
    mutated: &BTreeMap<String, String>,
) -> io::Result<()> {
    let mut wanted: BTreeMap<PathBuf, Vec<u8>> = BTreeMap::new();
    for file in files(root)? {
        wanted.insert(file.clone(), fs::read(root.join(file))?);
    }
    wanted.extend(mutated.iter().map(|(file, text)| (file.into(), text.clone().into_bytes())));
    fs::create_dir_all(copy)?;
    for file in files(copy)? {
        if !wanted.contains_key(&file) {
            fs::remove_file(copy.join(file))?;
        }
    }
    for (file, content) in wanted {
        let path = copy.join(file);
        if fs::read(&path).ok().as_ref() != Some(&content) {
            fs::create_dir_all(path.parent().unwrap_or(copy))?;
            fs::write(path, content)?;
        }
    }
    Ok(())
}

/// All files below a folder, but for what builds leave behind and what is hidden.
fn files(root: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(root.join(&folder))? {
            let entry = entry?;
            let name = entry.file_name();
            let path = folder.join(&name);
            let kind = entry.file_type()?;
            if name.to_string_lossy().starts_with('.') || name == "target" {
                continue;
            }
            if kind.is_dir() {
                folders.push(path);
            } else if kind.is_file() {
                found.push(path);
            }
        }
    }
    Ok(found)
}
