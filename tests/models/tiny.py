"""tiny.py: models of the package transformers in small sizes."""

SMALL = {
    "vocab_size": 96,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "attn_implementation": "eager",
}


def tiny(model, config=None, **options):
    """Returns a model of the class `model` of transformers, configured by SMALL and `options`."""
    import transformers

    cls = getattr(transformers, model)
    config_class = getattr(transformers, config) if config else cls.config_class
    # Some configurations refuse a general name because they have another name for it.
    refused = {"XLNetConfig": ["max_position_embeddings"], "FunnelConfig": ["num_hidden_layers"], "ProphetNetConfig": ["num_hidden_layers"]}
    small = {k: v for k, v in SMALL.items() if k not in refused.get(config_class.__name__, [])}
    return cls(config_class(**{**small, **options}))


def bare(model, config=None, **options):
    """Does as tiny() but without SMALL, for configurations that use other names."""
    import transformers

    cls = getattr(transformers, model)
    config_class = getattr(transformers, config) if config else cls.config_class
    made = config_class(**options)
    made._attn_implementation = "eager"
    return cls(made)
