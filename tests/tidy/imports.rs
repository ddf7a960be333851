//! Which files of a crate import which: `use` declarations and paths in code, each followed through re-exports to the file
//! that defines what is named.
//!
//! Methods are not seen, on purpose: a file that adds a part of a type's behaviour imports the type, and no file
//! imports the file.

use std::collections::{BTreeMap, BTreeSet};

use syn::{
    Attribute, Item, UseTree, Visibility,
    buffer::{Cursor, TokenBuffer},
    ext::IdentExt as _,
    visit::{self, Visit},
};

/// What every file imports, by their names below `src`.
pub(crate) type Arrows = BTreeMap<String, BTreeSet<String>>;

/// Names with `::` in between; of a module, those from the root of its crate.
type Path = Vec<String>;

/// The modules of a library crate; those for its tests are left out.
#[derive(Default)]
pub(crate) struct Library(BTreeMap<Path, Module>);

/// A module, and what is named in it.
#[derive(Default)]
struct Module {
    file: String,
    uses: Vec<Use>,
    /// All other paths, as they are written.
    paths: Vec<Path>,
    /// What it defines.
    items: BTreeSet<String>,
    /// Names in what macros make items of, each of which may be that of an item.
    made: BTreeSet<String>,
}

struct Use {
    /// What it is called here; `*` for whatever there is.
    name: String,
    path: Path,
    is_reexport: bool,
}

impl Library {
    /// Reads a crate's files, given as texts by their names below `src`.
    pub(crate) fn read(files: &BTreeMap<String, String>) -> Self {
        let mut library = Self::default();
        library.read_file(files, "lib.rs", Path::new());
        library
    }

    fn read_file(&mut self, files: &BTreeMap<String, String>, file: &str, path: Path) {
        let parsed =
            syn::parse_file(&files[file]).unwrap_or_else(|error| panic!("{file}: {error}"));
        self.read_items(files, file, path, &parsed.items);
    }

    fn read_items(
        &mut self,
        files: &BTreeMap<String, String>,
        file: &str,
        path: Path,
        items: &[Item],
    ) {
        let mut module = Module { file: file.to_owned(), ..Module::default() };
        for item in items {
            match item {
                Item::Mod(child) if child.attrs.iter().any(is_for_tests) => {}
                Item::Mod(child) => {
                    let path = below(&path, &[child.ident.unraw().to_string()]);
                    match &child.content {
                        Some((_, items)) => self.read_items(files, file, path, items),
                        None => {
                            let file = file_of(files, &path);
                            self.read_file(files, &file, path);
                        }
                    }
                }
                item => module.read_item(item),
            }
        }
        self.0.insert(path, module);
    }

    pub(crate) fn arrows(&self) -> Arrows {
        let mut arrows = Arrows::new();
        for (at, module) in &self.0 {
            let arrows = arrows.entry(module.file.clone()).or_default();
            let targets = self.imported(at, module).into_iter().filter_map(|it| self.home(&it));
            arrows.extend(targets.map(|it| it.file.clone()).filter(|file| *file != module.file));
        }
        arrows
    }

    /// What a module names of its crate, by its path from the root.
    fn imported(&self, at: &Path, module: &Module) -> Vec<Path> {
        let mut imported = Vec::new();
        for it in &module.uses {
            let Some(path) = self.in_crate(at, &it.path) else { continue };
            // A map of what is below needs none of it; what the code beside the map needs it names once more.
            if !(it.is_reexport && path.starts_with(at)) {
                imported.push(path);
            }
        }
        for path in &module.paths {
            // A name alone that no `use` has brought is not another module's.
            let of_use = module.uses.iter().find(|it| it.name == path[0]);
            let in_full = of_use.map(|it| below(&it.path, &path[1..]));
            let in_full = in_full.or_else(|| (path.len() > 1).then(|| path.clone()));
            imported.extend(in_full.and_then(|path| self.in_crate(at, &path)));
            imported.extend(self.by_glob(at, &path[0], |_| true).filter(|_| of_use.is_none()));
        }
        imported
    }

    /// A path that is written in the module `at`, from the root; `None` if it leads out of the crate, or is a name of the
    /// module's own.
    fn in_crate(&self, at: &Path, path: &[String]) -> Option<Path> {
        let (first, rest) = path.split_first()?;
        match first.as_str() {
            "crate" => Some(rest.to_vec()),
            "self" if !rest.is_empty() => Some(below(at, rest)),
            "super" => {
                let ups = path.iter().take_while(|part| *part == "super").count();
                Some(below(&at[..at.len().checked_sub(ups)?], &path[ups..]))
            }
            _ if self.0.contains_key(&below(at, &path[..1])) => Some(below(at, path)),
            _ => None,
        }
    }

    /// The module in which something is defined; `None` if that is in another crate.
    fn home(&self, path: &[String]) -> Option<&Module> {
        let mut at = Path::new();
        for (index, part) in path.iter().enumerate() {
            let rest = &path[index + 1..];
            let child = below(&at, std::slice::from_ref(part));
            let is_module = self.0.contains_key(&child);
            let reexport = self.0[&at].uses.iter().find(|it| it.is_reexport && it.name == *part);
            match reexport {
                // A function may be called as its module is.
                Some(reexport) if !is_module || rest.is_empty() => {
                    return self.home(&below(&self.in_crate(&at, &reexport.path)?, rest));
                }
                _ if is_module => at = child,
                _ => match self.by_glob(&at, part, |it| it.is_reexport) {
                    Some(path) => return self.home(&below(&path, rest)),
                    None => break,
                },
            }
        }
        self.0.get(&at)
    }

    /// What a name stands for in a module that says `*` of another one, which has it.
    fn by_glob(&self, at: &Path, name: &str, counts: impl Fn(&Use) -> bool) -> Option<Path> {
        let module = &self.0[at];
        let mut globs = module.uses.iter().filter(|it| it.name == "*" && counts(it));
        let there =
            globs.find_map(|it| self.in_crate(at, &it.path).filter(|it| self.has(it, name)));
        there.filter(|_| !module.items.contains(name)).map(|it| below(&it, &[name.to_owned()]))
    }

    /// Whether a name can be had from a module.
    fn has(&self, at: &Path, name: &str) -> bool {
        self.0.get(at).is_some_and(|module| {
            let of_use = module.uses.iter().find(|it| it.name == name);
            module.items.contains(name)
                || of_use.is_some_and(|it| it.is_reexport)
                || of_use.is_none() && module.made.contains(name)
                || self.by_glob(at, name, |it| it.is_reexport).is_some()
        })
    }
}

impl Module {
    fn read_item(&mut self, item: &Item) {
        let before = self.paths.len();
        self.visit_item(item);
        let name = match item {
            Item::Const(it) => &it.ident,
            Item::Enum(it) => &it.ident,
            Item::Fn(it) => &it.sig.ident,
            Item::Static(it) => &it.ident,
            Item::Struct(it) => &it.ident,
            Item::Trait(it) => &it.ident,
            Item::Type(it) => &it.ident,
            Item::Macro(it) if it.ident.is_none() => {
                let alone = self.paths[before..].iter().filter(|path| path.len() == 1);
                return self.made.extend(alone.map(|path| path[0].clone()));
            }
            _ => return,
        };
        self.items.insert(name.unraw().to_string());
    }

    fn read_use(&mut self, tree: &UseTree, above: &Path, is_reexport: bool) {
        let within = |name: &syn::Ident| below(above, &[name.unraw().to_string()]);
        let (name, path) = match tree {
            UseTree::Path(it) => return self.read_use(&it.tree, &within(&it.ident), is_reexport),
            UseTree::Group(group) => {
                return group.items.iter().for_each(|it| self.read_use(it, above, is_reexport));
            }
            UseTree::Name(it) if it.ident == "self" => (above.last().cloned(), above.clone()),
            UseTree::Name(it) => (Some(it.ident.unraw().to_string()), within(&it.ident)),
            UseTree::Rename(it) if it.ident == "self" => {
                (Some(it.rename.to_string()), above.clone())
            }
            UseTree::Rename(it) => (Some(it.rename.unraw().to_string()), within(&it.ident)),
            UseTree::Glob(_) => (Some("*".to_owned()), above.clone()),
        };
        let name = name.unwrap_or_default();
        self.uses.push(Use { name, path, is_reexport });
    }

    /// What is named in a macro's input, which only the macro can interpret.
    fn read_tokens(&mut self, mut at: Cursor<'_>) {
        let mut path = Path::new();
        while !at.eof() {
            if let Some((ident, rest)) = at.ident() {
                path.push(ident.unraw().to_string());
                at = rest;
                if let Some(rest) = colons(at).filter(|rest| rest.ident().is_some()) {
                    at = rest;
                    continue;
                }
            } else if let Some((inside, .., rest)) = at.any_group() {
                self.read_tokens(inside);
                at = rest;
            } else if let Some((_, rest)) = at.token_tree() {
                at = rest;
            }
            if !path.is_empty() {
                self.paths.push(std::mem::take(&mut path));
            }
        }
    }
}

impl<'ast> Visit<'ast> for Module {
    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        if !item.attrs.iter().any(is_for_tests) {
            let is_reexport = !matches!(item.vis, Visibility::Inherited);
            self.read_use(&item.tree, &Path::new(), is_reexport);
        }
    }

    // What is visible where is no import.
    fn visit_visibility(&mut self, _: &'ast Visibility) {}

    fn visit_path(&mut self, path: &'ast syn::Path) {
        if path.leading_colon.is_none() {
            self.paths.push(path.segments.iter().map(|it| it.ident.unraw().to_string()).collect());
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, it: &'ast syn::Macro) {
        self.visit_path(&it.path);
        self.read_tokens(TokenBuffer::new2(it.tokens.clone()).begin());
    }
}

fn below(at: &[String], path: &[String]) -> Path {
    [at, path].concat()
}

fn colons(at: Cursor<'_>) -> Option<Cursor<'_>> {
    let (first, at) = at.punct()?;
    let (second, at) = at.punct()?;
    (first.as_char() == ':' && second.as_char() == ':').then_some(at)
}

fn file_of(files: &BTreeMap<String, String>, module: &Path) -> String {
    let path = module.join("/");
    let mut places = [format!("{path}.rs"), format!("{path}/mod.rs")].into_iter();
    places.find(|file| files.contains_key(file)).unwrap_or_else(|| panic!("no file for {path}"))
}

fn is_for_tests(attribute: &Attribute) -> bool {
    attribute.path().is_ident("cfg")
        && attribute.parse_args::<syn::Ident>().is_ok_and(|condition| condition == "test")
}

/// Files that import each other, whether or not by way of others: those of each circle together.
pub(crate) fn circles(arrows: &Arrows) -> Vec<Vec<&str>> {
    let reached: BTreeMap<&str, BTreeSet<&str>> =
        arrows.keys().map(|file| (file.as_str(), reached_from(file, arrows))).collect();
    let mut circles = Vec::new();
    for (file, there) in &reached {
        let back = |other: &&str| reached.get(other).is_some_and(|there| there.contains(file));
        let circle: Vec<&str> = there.iter().copied().filter(back).collect();
        // Each once, by the first of its files.
        if circle.first() == Some(file) {
            circles.push(circle);
        }
    }
    circles
}

fn reached_from<'a>(file: &str, arrows: &'a Arrows) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut open: Vec<&str> = vec![file];
    while let Some(file) = open.pop() {
        let next = arrows.get(file).into_iter().flatten().map(String::as_str);
        open.extend(next.filter(|file| reached.insert(*file)).collect::<Vec<_>>());
    }
    reached
}
