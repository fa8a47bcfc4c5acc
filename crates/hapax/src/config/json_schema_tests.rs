use super::*;

/// Every `$ref` of a schema.
fn references(schema: &Value) -> Vec<String> {
    match schema {
        Value::Object(fields) => fields
            .iter()
            .flat_map(|(name, value)| match value.as_str() {
                Some(target) if name == "$ref" => vec![target.to_owned()],
                Some(_) | None => references(value),
            })
            .collect(),
        Value::Array(items) => items.iter().flat_map(references).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
    }
}

/// Goal: editors can follow the schema. Method: every reference leads somewhere.
#[test]
fn every_reference_leads_to_a_definition() {
    let schema = json_schema();
    let all = references(&schema);
    assert!(all.len() > 10);
    for target in all {
        let name = target.strip_prefix("#/$defs/").expect("a local reference").replace("%5B", "[").replace("%5D", "]");
        assert!(schema["$defs"].get(&name).is_some(), "{target}");
    }
}

/// Goal: the schema says what the table says. Method: a few facts of each sort.
#[test]
fn the_schema_holds_the_facts_of_the_table() {
    let schema = json_schema();
    let definition = |name: &str| &schema["$defs"][name];
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    assert_eq!(definition("configuration")["additionalProperties"], false);
    assert_eq!(definition("configuration")["properties"]["memory"]["default"], "256MiB");
    assert_eq!(definition("workflow")["required"], json!(["id"]));
    assert_eq!(definition("workflow")["properties"]["transformTimeout"]["default"], "10s");
    assert_eq!(definition("delivery")["properties"]["guarantee"]["anyOf"][0]["oneOf"][3]["const"], "exactly-once");
    assert_eq!(definition("delivery.retries")["properties"]["backoffMs"]["default"][4], 30_000);
    assert_eq!(definition("sink")["oneOf"][0]["required"], json!(["sqlite"]));
}
