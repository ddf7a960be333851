//! Attributes of the tests.

use proc_macro::{Delimiter, Group, TokenStream, TokenTree};

/// Makes a test of an `async fn`: the function that the attribute names, which is in scope, is called with an async
/// closure of the same parameters and body.
///
/// ```text
/// #[test_with(on_each_server)]                     #[test]
/// async fn name(site: &Site) {                     fn name() {
///     body                                             on_each_server(async |site: &Site| {
/// }                                                        body
///                                                      });
///                                                  }
/// ```
///
/// # Panics
/// What it stands on is no function with a body: it does not compile.
#[proc_macro_attribute]
pub fn test_with(runner: TokenStream, test: TokenStream) -> TokenStream {
    let tokens: Vec<TokenTree> = test.into_iter().collect();
    let is_async = |token: &TokenTree| token.to_string() == "async";
    let begin = tokens.iter().position(is_async).expect("an async fn");
    let (above, function) = tokens.split_at(begin);
    let [_async, _fn, name, TokenTree::Group(parameters), .., body] = function else {
        panic!("an async fn with a body");
    };
    let closure = chain([parsed("async |"), parameters.stream(), parsed("|"), body.clone().into()]);
    let call = chain([runner, group(Delimiter::Parenthesis, closure), parsed(";")]);
    let (no_parameters, call) =
        (group(Delimiter::Parenthesis, TokenStream::new()), group(Delimiter::Brace, call));
    let above = above.iter().cloned().collect();
    chain([parsed("#[test]"), above, parsed("fn"), name.clone().into(), no_parameters, call])
}

fn chain<const N: usize>(parts: [TokenStream; N]) -> TokenStream {
    parts.into_iter().collect()
}

fn parsed(text: &str) -> TokenStream {
    text.parse().expect("tokens")
}

fn group(delimiter: Delimiter, content: TokenStream) -> TokenStream {
    TokenTree::from(Group::new(delimiter, content)).into()
}
