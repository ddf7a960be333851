//! Whether a reader of the page of a type, or of what makes it, is shown what one does with it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
};

use serde_json::Value;

use crate::{LIBRARIES, rustdoc};

/// Types that need no example, and why.
const WITHOUT: [(&str, &str); 4] = [
    ("SaslExchange", "the example of the mechanism that begins it is mostly about it"),
    ("Acquire", "bound of methods of `blocking::Blocking`, which are shown; has no public name"),
    ("Hold", "the same"),
    ("GiveBack", "the same"),
];

/// A library's documentation.
struct Docs(BTreeMap<String, Value>);

impl Docs {
    fn of(library: &str, features: &str) -> Self {
        let json = fs::read(rustdoc::json(library, features)).unwrap();
        let mut json: Value = serde_json::from_slice(&json).unwrap();
        let index = json["index"].take();
        Self(index.as_object().unwrap().clone().into_iter().collect())
    }

    /// The library's own public items of one kind, with what is particular to that.
    fn items<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = (&'a Value, &'a Value)> {
        self.0.values().filter_map(move |item| {
            let is_ours = item["crate_id"] == 0 && item["visibility"] == "public";
            Some((item, item["inner"].get(kind)?)).filter(|_| is_ours)
        })
    }

    fn by_ids<'a>(&'a self, ids: &'a Value) -> impl Iterator<Item = &'a Value> {
        ids.as_array().unwrap().iter().filter_map(|id| self.0.get(&id.to_string()))
    }

    /// What can be called on a type, as far as that is its own.
    fn methods<'a>(&'a self, of_type: &'a Value) -> impl Iterator<Item = &'a Value> {
        let own =
            self.by_ids(&of_type["impls"]).filter(|it| it["inner"]["impl"]["trait"].is_null());
        let methods = own.flat_map(|it| self.by_ids(&it["inner"]["impl"]["items"]));
        methods.filter(|it| it["visibility"] == "public" && it["inner"]["function"].is_object())
    }

    /// The types that are returned by functions with an example, or that are called in the example of the type that
    /// has them.
    fn shown_being_made(&self) -> BTreeSet<String> {
        let functions = self.0.values().filter(|item| has_example(item));
        let mut shown: Vec<&Value> = functions.collect();
        for (item, inner) in self.items("struct").filter(|(item, _)| has_example(item)) {
            let docs = item["docs"].as_str().unwrap();
            let is_called = |name: &str| docs.contains(&format!(".{name}("));
            shown.extend(self.methods(inner).filter(|it| is_called(it["name"].as_str().unwrap())));
        }
        let mut found = BTreeSet::new();
        for function in shown {
            types_in(&function["inner"]["function"]["sig"]["output"], &mut found);
        }
        found
    }

    /// The names of types that have methods, and no example on themselves, on any of their methods, or on what
    /// returns them.
    fn without_example(&self) -> BTreeSet<&str> {
        let made = self.shown_being_made();
        let types = self.items("struct").chain(self.items("enum"));
        let types = types.map(|(item, inner)| (item, self.methods(inner).collect::<Vec<_>>()));
        let traits =
            self.items("trait").map(|(item, inner)| (item, self.by_ids(&inner["items"]).collect()));
        types
            .chain(traits)
            .filter(|(item, methods)| {
                let is_shown = has_example(item) || methods.iter().any(|it| has_example(it));
                !methods.is_empty() && !is_shown && !made.contains(&item["id"].to_string())
            })
            .map(|(item, _)| item["name"].as_str().unwrap())
            .collect()
    }
}

/// Whether a program is part of what is said of an item.
fn has_example(item: &Value) -> bool {
    let docs = item["docs"].as_str().unwrap_or_default();
    docs.lines().any(|line| line == "```" || line.starts_with("```no_run"))
}

/// The numbers of all types that are named in a type.
fn types_in(output: &Value, found: &mut BTreeSet<String>) {
    match output {
        Value::Object(fields) => {
            if let Some(path) = fields.get("resolved_path") {
                found.insert(path["id"].to_string());
            }
            fields.values().for_each(|field| types_in(field, found));
        }
        Value::Array(elements) => elements.iter().for_each(|element| types_in(element, found)),
        _ => {}
    }
}

#[test]
fn every_type_with_methods_is_shown_at_work() {
    let excused: BTreeSet<&str> = WITHOUT.iter().map(|(name, _)| *name).collect();
    let mut without = BTreeSet::new();
    for (library, features) in LIBRARIES.iter().filter(|(library, _)| *library != "zk-proto") {
        let docs = Docs::of(library, features);
        assert!(docs.items("struct").count() > 20, "this is not how rustdoc writes JSON any more");
        without.extend(docs.without_example().into_iter().map(str::to_owned));
    }
    let found: BTreeSet<&str> = without.iter().map(String::as_str).collect();
    let missing: Vec<_> = found.difference(&excused).collect();
    assert!(missing.is_empty(), "no example shows {missing:?}");
    let needless: Vec<_> = excused.difference(&found).collect();
    assert!(needless.is_empty(), "an example shows {needless:?}, which need none");
}

#[test]
fn only_code_blocks_count_as_examples() {
    let docs = |docs: &str| serde_json::json!({ "docs": docs });
    assert!(has_example(&docs("Does it.\n\n```\nit();\n```")));
    assert!(has_example(&docs("Does it.\n\n```no_run\nit();\n```")));
    assert!(!has_example(&docs("Draws it.\n\n```text\n-->\n")));
    assert!(!has_example(&serde_json::json!({ "docs": null })));

    let (mut found, inner) = (BTreeSet::new(), serde_json::json!({ "resolved_path": { "id": 7 } }));
    let output = serde_json::json!({ "resolved_path": { "id": 3, "args": [{ "type": inner }] } });
    types_in(&output, &mut found);
    assert!(found.iter().eq(["3", "7"]));
}
