//! `headers` of a config, from the keys that clients have for headers.

use super::entry::{Entry, position, value};
use super::{Client, text_of};
use crate::http_endpoint::is_own_header;
use crate::spanned::{Data, Member, Spanned};
use crate::template::is_variable_name;
use broker_model::json::escape_token;

/// Keys with headers, besides `headers`.
const OTHERS: [&str; 2] = ["http_headers", "env_http_headers"];
/// The placeholder of LibreChat for a value of its user.
const PLACEHOLDER: &str = "{{";

/// Makes one `headers` of all keys. A header of a name that was there before is not taken.
pub(super) fn convert(entry: &mut Entry<'_, '_>, members: &mut Vec<Member>) {
    if position(members, "url").is_none() {
        return;
    }
    if entry.rules.client == Some(Client::Continue) {
        unnest(members);
    }
    let token = value(members, "bearer_token_env_var").and_then(text_of);
    let token = token
        .filter(|name| is_variable_name(name))
        .map(str::to_owned);
    let mut first: Vec<Member> = Vec::new();
    let mut refused: Vec<(usize, String)> = Vec::new();
    let mut placeholders: Vec<(usize, String)> = Vec::new();
    members.retain(|member| {
        if member.key != "bearer_token_env_var" {
            return true;
        }
        match &token {
            Some(name) => first.push(Member {
                at: member.at,
                key: "Authorization".to_owned(),
                value: Spanned {
                    at: member.value.at,
                    data: Data::String(format!("Bearer ${{{name}}}")),
                },
            }),
            None => refused.push((member.at, member.key.clone())),
        }
        false
    });
    let mut all = first;
    let mut place = all.first().map(|header| header.at);
    for key in ["headers", OTHERS[0], OTHERS[1]] {
        let Some(at) = position(members, key) else {
            continue;
        };
        let Some(Member {
            value, at: key_at, ..
        }) = members.get_mut(at)
        else {
            continue;
        };
        // The reader of the entry says what is wrong with another value.
        let Data::Object(list) = &mut value.data else {
            continue;
        };
        place.get_or_insert(*key_at);
        for mut header in std::mem::take(list) {
            let name = format!("{key}.{}", header.key);
            let is_known = all
                .iter()
                .any(|one| one.key.eq_ignore_ascii_case(&header.key));
            if is_own_header(&header.key) || (is_known && key != "headers") {
                refused.push((header.at, name));
                continue;
            }
            if entry.rules.client == Some(Client::LibreChat)
                && text_of(&header.value).is_some_and(|text| text.contains(PLACEHOLDER))
            {
                placeholders.push((header.at, name));
                continue;
            }
            if key == "env_http_headers" {
                match text_of(&header.value).filter(|text| is_variable_name(text)) {
                    Some(variable) => {
                        header.value.data = Data::String(format!("${{{variable}}}"));
                    }
                    None => {
                        refused.push((header.at, name));
                        continue;
                    }
                }
            }
            if key != "headers" {
                entry.renamed(
                    &format!("headers/{}", escape_token(&header.key)),
                    &format!("{key}/{}", escape_token(&header.key)),
                );
            }
            all.push(header);
        }
        members.remove(at);
    }
    for (at, key) in refused {
        entry.not_taken(at, &key, None);
    }
    for (at, key) in placeholders {
        let reason = "it has a value of a user of LibreChat, which the broker does not know";
        entry.not_taken(at, &key, Some(reason));
    }
    if let Some(at) = place {
        members.push(Member {
            at,
            key: "headers".to_owned(),
            value: Spanned {
                at,
                data: Data::Object(all),
            },
        });
    }
}

/// Continue has headers in `requestOptions`.
fn unnest(members: &mut Vec<Member>) {
    let options = members
        .iter_mut()
        .find(|member| member.key == "requestOptions");
    let Some(Data::Object(options)) = options.map(|member| &mut member.value.data) else {
        return;
    };
    let Some(at) = position(options, "headers") else {
        return;
    };
    let headers = options.remove(at);
    let is_empty = options.is_empty();
    if is_empty {
        members.retain(|member| member.key != "requestOptions");
    }
    if position(members, "headers").is_none() {
        members.push(headers);
    }
}
