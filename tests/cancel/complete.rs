//! Whether the list of futures is the whole API: the lists of what is public are asked.

use std::collections::BTreeSet;

use crate::cancel::scene::{ELSEWHERE, scenes};

/// What is public, as `tests/surface` keeps it.
const PUBLIC: [&str; 2] =
    [include_str!("../surface/zk-client.txt"), include_str!("../surface/zk-locks.txt")];

/// Every future that the list names.
pub(crate) fn futures() -> BTreeSet<&'static str> {
    scenes().map(|scene| scene.future).collect()
}

/// A name without the parameters of types, and without the crate.
fn plain(name: &str) -> String {
    let mut depth = 0;
    let plain: String = name
        .chars()
        .filter(|c| {
            depth += i32::from(*c == '<');
            let outside = depth == 0;
            // Not that of an arrow.
            depth -= i32::from(*c == '>' && !outside);
            outside
        })
        .collect();
    plain.split_once("::").map_or_else(|| plain.clone(), |(_, name)| name.to_owned())
}

/// What can be awaited of all that is public: types, and functions as `Type::function`.
fn awaited(public: &str) -> BTreeSet<String> {
    let is_future =
        |line: &&str| line.contains("::Future for ") || line.contains("::IntoFuture for ");
    let of_type = |line: &str| {
        let (_, name) = line.split_once(" for ")?;
        Some(plain(name.split(" where ").next()?))
    };
    let types: BTreeSet<String> = public.lines().filter(is_future).filter_map(of_type).collect();
    // Names for some of these types.
    let alias = |line: &str| {
        let (name, of) = line.strip_prefix("pub type ")?.split_once(" = ")?;
        (!name.contains(">::") && types.contains(&plain(of))).then(|| plain(name))
    };
    let aliases: BTreeSet<String> = public.lines().filter_map(alias).collect();
    let function = |line: &str| {
        let (before, after) = line.strip_prefix("pub ")?.split_once("fn ")?;
        let path = plain(after).split_once('(')?.0.to_owned();
        let result = after.rsplit_once(") -> ").map_or("", |(_, result)| result);
        let of_future = plain(result.split(['(', ',']).next().unwrap_or_default());
        let is_awaited = before.contains("async")
            || result.starts_with("impl core::future")
            || types.contains(&of_future)
            || aliases.contains(&of_future);
        (is_awaited && !path.ends_with("::into_future")).then_some(path)
    };
    public.lines().filter_map(function).chain(types.clone()).collect()
}

#[test]
fn list_of_futures_matches_the_api() {
    let awaited: BTreeSet<String> = PUBLIC.into_iter().flat_map(awaited).collect();
    let elsewhere = ELSEWHERE.iter().map(|(future, _)| *future);
    let listed: BTreeSet<String> =
        futures().into_iter().chain(elsewhere).map(str::to_owned).collect();
    let missing: Vec<_> = awaited.difference(&listed).collect();
    assert!(missing.is_empty(), "no scene drops {missing:?}");
    let invented: Vec<_> = listed.difference(&awaited).collect();
    assert!(invented.is_empty(), "the API has no {invented:?}");
}

#[test]
fn every_form_of_future_is_detected() {
    let public = "\
        pub async fn zk::Thing<'a>::wait(&self) -> bool\n\
        pub fn zk::Thing<'a>::go(self) -> impl core::future::future::Future<Output = ()>\n\
        pub fn zk::Thing<'a>::now(self) -> usize\n\
        pub const fn zk::Thing<'a>::get<'b>(&'b self, &'b str) -> zk::Request<'b, (u8, u8), zk::Error>\n\
        pub fn zk::Thing<'a>::several(&self) -> zk::Several<'_>\n\
        pub type zk::Several<'a> = zk::Request<'a, Vec<u8>, zk::Error>\n\
        impl<T, E: zk::Private> core::future::into_future::IntoFuture for zk::Request<'_, T, E>\n\
        pub type zk::Request<'_, T, E>::IntoFuture = zk::Later<T, E>\n\
        pub fn zk::Request<'_, T, E>::into_future(self) -> zk::Later<T, E>\n\
        impl<T> core::future::future::Future for zk::Later<T> where T: core::marker::Send\n\
        pub fn zk::Request<'a, (), zk::Error>::other(self) -> zk::Request<'a, (u8, u8), zk::Error>\n\
        pub async fn zk::run(u8)\n";
    let expected = [
        "Later",
        "Request",
        "Request::other",
        "Thing::get",
        "Thing::go",
        "Thing::several",
        "Thing::wait",
        "run",
    ];
    assert!(awaited(public).iter().map(String::as_str).eq(expected), "{:?}", awaited(public));
}
