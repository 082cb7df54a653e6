//! Corrects the output of typify: removes texts of the server and unused code, distinguishes absent from
//! null and from empty, and restores the names of members.

use std::collections::BTreeSet;

use proc_macro2::TokenStream;
use quote::{ToTokens as _, format_ident, quote};
use syn::punctuated::Punctuated;
use syn::{Attribute, Field, Fields, File, Ident, Item, ItemEnum, ItemStruct, Token, Type};

use super::outline::Outline;
use super::simplify::EXTRA;
use super::{SchemaOf, names};

/// The serde attribute of the field with undeclared members.
const FLATTEN: &str = "flatten";
/// The prefix of structs with the required members of another struct. The names of all other types begin
/// with `Args` or `Output`.
pub(super) const REQUIRED: &str = "Required";
/// The prefix of setters. With it no member's name makes a setter `new` or `clone`.
const SETTER: &str = "with";
/// The name of the field with undeclared members if the schema has a member `extra`. Then neither is called
/// `extra`: code for one of them must not compile with the other.
const UNDECLARED: &str = "undeclared_members";
/// The deserializer of a required member that may be null.
const NULLABLE: &str = "::std::option::Option::deserialize";

/// The refined code of one schema.
#[derive(Clone, Debug, Default)]
pub(super) struct Refined {
    /// The types with constructors and setters.
    pub(super) whole: TokenStream,
    /// The types without them.
    pub(super) bare: TokenStream,
}

/// Refines typify's output for one schema.
pub(super) fn refine(code: TokenStream, outline: &Outline) -> Result<Refined, &'static str> {
    let file: File = syn::parse2(code).map_err(|_| "typify wrote invalid Rust")?;
    let defaults: BTreeSet<String> = file.items.iter().filter_map(implements_default).collect();
    let mut refined = Refined::default();
    for item in file.items {
        let mut out = TokenStream::new();
        match item {
            Item::Struct(mut item) => {
                replace_docs(&mut item.attrs, &item.ident);
                let needed = fields(&mut item, outline)?;
                item.to_tokens(&mut out);
                refined.whole.extend(out.clone());
                refined.bare.extend(out);
                refined.whole.extend(construction(&item, &needed));
                out = if needed.is_empty() && !defaults.contains(&item.ident.to_string()) {
                    default(&item)
                } else {
                    TokenStream::new()
                };
            }
            Item::Enum(mut item) => {
                replace_docs(&mut item.attrs, &item.ident);
                for variant in &mut item.variants {
                    strip_docs(&mut variant.attrs);
                    variant
                        .fields
                        .iter_mut()
                        .for_each(|field| strip_docs(&mut field.attrs));
                }
                item.to_tokens(&mut out);
                out.extend(conversions(&item));
            }
            Item::Impl(item) if is_wanted(&item) => item.to_tokens(&mut out),
            // Conversions from texts, and their errors.
            Item::Impl(_) | Item::Mod(_) => {}
            _ => return Err("typify wrote an unknown kind of item"),
        }
        refined.whole.extend(out.clone());
        refined.bare.extend(out);
    }
    Ok(refined)
}

/// The name of a type, if the item derives or implements `Default` for it.
fn implements_default(item: &Item) -> Option<String> {
    match item {
        Item::Struct(item) => {
            let derives = item
                .attrs
                .iter()
                .filter(|one| one.path().is_ident("derive"));
            let mut all = derives.map(|one| one.to_token_stream().to_string());
            all.any(|derive| derive.contains("Default"))
                .then(|| item.ident.to_string())
        }
        Item::Impl(item) if is_wanted(item) => Some(item.self_ty.to_token_stream().to_string()),
        _ => None,
    }
}

/// `Default` for a struct without required fields.
fn default(item: &ItemStruct) -> TokenStream {
    let Fields::Named(named) = &item.fields else {
        return TokenStream::new();
    };
    let name = &item.ident;
    let fields = named.named.iter().filter_map(|field| field.ident.as_ref());
    quote! {
        impl ::std::default::Default for #name {
            fn default() -> Self {
                Self { #(#fields: ::std::default::Default::default(),)* }
            }
        }
    }
}

/// Defaults are kept; conversions are generated again.
fn is_wanted(item: &syn::ItemImpl) -> bool {
    let last = item
        .trait_
        .as_ref()
        .and_then(|(path, _)| path.segments.last());
    last.is_some_and(|last| last.ident == "Default")
}

/// `From` for the content of a variant, if no other variant has the same type.
fn conversions(item: &ItemEnum) -> TokenStream {
    let name = &item.ident;
    let held: Vec<_> = item
        .variants
        .iter()
        .filter_map(|variant| match &variant.fields {
            Fields::Unnamed(fields) if fields.unnamed.len() == 1 => {
                Some((&variant.ident, &fields.unnamed.first()?.ty))
            }
            _ => None,
        })
        .collect();
    let text = |ty: &Type| ty.to_token_stream().to_string();
    held.iter()
        .filter(|(_, ty)| {
            held.iter()
                .filter(|(_, other)| text(other) == text(ty))
                .count()
                == 1
        })
        .map(|(variant, ty)| {
            quote! {
                impl ::std::convert::From<#ty> for #name {
                    fn from(value: #ty) -> Self {
                        Self::#variant(value)
                    }
                }
            }
        })
        .collect()
}

/// The required fields, in order.
type Needed = Vec<(Ident, Type)>;

fn fields(item: &mut ItemStruct, outline: &Outline) -> Result<Needed, &'static str> {
    let owner = item.ident.to_string();
    let Fields::Named(named) = &mut item.fields else {
        item.fields
            .iter_mut()
            .for_each(|field| strip_docs(&mut field.attrs));
        return Ok(Vec::new());
    };
    let mut needed = Vec::new();
    let mut has_extra = false;
    for field in &mut named.named {
        let ident = field
            .ident
            .clone()
            .ok_or("typify wrote a field without a name")?;
        let said = SerdeAttributes::read(&field.attrs)?;
        if said.flatten {
            field.attrs = vec![serde_attribute(quote!(flatten))];
            continue;
        }
        let key = said.rename.unwrap_or_else(|| ident.to_string());
        let place = (owner.clone(), key.clone());
        let member = outline.renamed.get(&place).unwrap_or(&key);
        has_extra |= names::folded(member) == EXTRA;
        let mut parts = Vec::new();
        if *ident.to_string().trim_start_matches("r#") != *member {
            parts.push(quote!(rename = #member));
        }
        if said.default {
            let inner = inner_of_option(&field.ty).unwrap_or_else(|| field.ty.clone());
            let both = outline.absent_or_null.contains(&place);
            parts.push(quote!(default));
            parts.push(quote!(
                skip_serializing_if = "::std::option::Option::is_none"
            ));
            if both {
                parts.push(quote!(deserialize_with = "::mcp_broker::typed::present"));
            }
            let inner = if both && !is_value(&inner) {
                syn::parse_quote!(::std::option::Option<#inner>)
            } else {
                inner
            };
            field.ty = syn::parse_quote!(::std::option::Option<#inner>);
        } else {
            if said.null {
                parts.push(quote!(deserialize_with = #NULLABLE));
            }
            needed.push((ident, field.ty.clone()));
        }
        field.attrs.clear();
        if !parts.is_empty() {
            field.attrs.push(serde_attribute(quote!(#(#parts),*)));
        }
    }
    if has_extra {
        rename_undeclared(&mut named.named);
    }
    Ok(needed)
}

/// Gives the field of undeclared members a name that the schema does not have.
fn rename_undeclared(fields: &mut Punctuated<Field, Token![,]>) {
    let mut name = UNDECLARED.to_owned();
    while fields
        .iter()
        .any(|field| field.ident.as_ref().is_some_and(|ident| *ident == name))
    {
        name.push('_');
    }
    let undeclared = fields
        .iter_mut()
        .find(|field| field.ident.as_ref().is_some_and(|ident| ident == EXTRA));
    if let Some(field) = undeclared {
        field.ident = Some(format_ident!("{name}"));
    }
}

/// The constructors of a struct, for callers that do not name all of its fields. `new` takes the required
/// fields: a single one by position, several by name, since a new lock may rename two members of one type,
/// and a caller by position would not notice the exchange. The other fields have setters. A struct without
/// required fields has `Default`; a struct with only required fields is built as a literal.
fn construction(item: &ItemStruct, needed: &Needed) -> TokenStream {
    let Fields::Named(named) = &item.fields else {
        return TokenStream::new();
    };
    if needed.len() == named.named.len() {
        return TokenStream::new();
    }
    let name = &item.ident;
    let (idents, types): (Vec<_>, Vec<_>) = needed.iter().cloned().unzip();
    let rest: Vec<_> = named
        .named
        .iter()
        .filter_map(|field| Some((field.ident.as_ref()?, &field.ty)))
        .filter(|(ident, _)| !idents.contains(ident))
        .collect();
    let others = rest.iter().map(|(ident, _)| ident);
    let rest_of_new = quote!(#(#others: ::std::default::Default::default(),)*);
    let mut required = TokenStream::new();
    let new = match &idents[..] {
        [] => None,
        [_] => Some(quote! {
            pub fn new(#(#idents: #types),*) -> Self {
                Self { #(#idents,)* #rest_of_new }
            }
        }),
        _ => {
            let by_name = required_name(name);
            required = quote! {
                #[doc = " The required members."]
                pub struct #by_name { #(pub #idents: #types,)* }
            };
            Some(quote! {
                pub fn new(required: #by_name) -> Self {
                    Self { #(#idents: required.#idents,)* #rest_of_new }
                }
            })
        }
    };
    let setters = rest
        .iter()
        .filter_map(|(ident, ty)| Some(setter(ident, &inner_of_option(ty)?)));
    quote! {
        #required
        impl #name {
            #new
            #(#setters)*
        }
    }
}

/// `Required` for the arguments themselves, `RequiredArgsFilter` for a type below them.
fn required_name(name: &Ident) -> Ident {
    if name == SchemaOf::Args.type_name() {
        format_ident!("{REQUIRED}")
    } else {
        format_ident!("{REQUIRED}{name}")
    }
}

fn setter(ident: &Ident, ty: &Type) -> TokenStream {
    let text = ident.to_string();
    let setter = format_ident!("{SETTER}_{}", text.trim_start_matches("r#"));
    quote! {
        pub fn #setter(mut self, value: #ty) -> Self {
            self.#ident = Some(value);
            self
        }
    }
}

/// The content of typify's serde attributes of a field.
#[derive(Default)]
struct SerdeAttributes {
    rename: Option<String>,
    default: bool,
    flatten: bool,
    /// Null is valid, and absence is not.
    null: bool,
}

impl SerdeAttributes {
    fn read(attributes: &[Attribute]) -> Result<Self, &'static str> {
        let mut said = Self::default();
        for attribute in attributes.iter().filter(|one| one.path().is_ident("serde")) {
            let read = attribute.parse_nested_meta(|meta| {
                if meta.path.is_ident("rename") {
                    said.rename = Some(meta.value()?.parse::<syn::LitStr>()?.value());
                } else if meta.path.is_ident("default") {
                    said.default = true;
                    if meta.input.peek(syn::Token![=]) {
                        return Err(meta.error("a default of the schema"));
                    }
                } else if meta.path.is_ident(FLATTEN) {
                    said.flatten = true;
                } else if meta.path.is_ident("deserialize_with") {
                    let function = meta.value()?.parse::<syn::LitStr>()?.value();
                    if function != NULLABLE {
                        return Err(meta.error("unknown"));
                    }
                    said.null = true;
                } else if meta.path.is_ident("skip_serializing_if") {
                    meta.value()?.parse::<syn::LitStr>()?;
                    said.default = true;
                } else {
                    return Err(meta.error("unknown"));
                }
                Ok(())
            });
            read.map_err(|_| "typify wrote an unknown serde attribute")?;
        }
        Ok(said)
    }
}

fn serde_attribute(tokens: TokenStream) -> Attribute {
    syn::parse_quote!(#[serde(#tokens)])
}

/// Replaces the docs of a type: a text of a server could be an instruction, and would change the code with each wording.
fn replace_docs(attributes: &mut Vec<Attribute>, name: &Ident) {
    strip_docs(attributes);
    attributes.insert(0, doc_of(&name.to_string()));
}

/// Returns the docs of the type of this name.
pub(super) fn doc_of(name: &str) -> Attribute {
    let (args, output) = (SchemaOf::Args.type_name(), SchemaOf::Output.type_name());
    let text = if name == args {
        " The arguments of the tool."
    } else if name == output {
        " The structured result of the tool."
    } else if name.starts_with(args) {
        " A part of the arguments."
    } else {
        " A part of the result."
    };
    syn::parse_quote!(#[doc = #text])
}

fn strip_docs(attributes: &mut Vec<Attribute>) {
    attributes.retain(|attribute| !attribute.path().is_ident("doc"));
}

/// `T` of `::std::option::Option<T>`.
fn inner_of_option(ty: &Type) -> Option<Type> {
    let Type::Path(path) = ty else { return None };
    let last = path.path.segments.last()?;
    let syn::PathArguments::AngleBracketed(arguments) = &last.arguments else {
        return None;
    };
    match arguments.args.first()? {
        syn::GenericArgument::Type(inner) if last.ident == format_ident!("Option") => {
            Some(inner.clone())
        }
        _ => None,
    }
}

/// Whether a type accepts any JSON value, null included.
fn is_value(ty: &Type) -> bool {
    matches!(ty, Type::Path(path) if path.path.segments.last().is_some_and(|last| last.ident == "Value"))
}
